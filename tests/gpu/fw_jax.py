#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""JAX inside a cap: trains, fills until refused, recovers.   mete cap --gpu 16G -- python3 fw_jax.py default|cuda_async
`--footprint` (outside a cap): what JAX's libraries load into the context beyond a bare one.
"""
import os
import sys

from rows import GIB, MIB, Nvml, check, end, grant, info, mib, skip

mode = sys.argv[1] if len(sys.argv) > 1 else "default"
if mode == "cuda_async":
    os.environ["XLA_PYTHON_CLIENT_ALLOCATOR"] = "cuda_async"
if mode == "--footprint":
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
try:
    import jax
    import jax.numpy as jnp
    if jax.default_backend() != "gpu":
        skip("JAX", "no GPU backend")
except ImportError:
    skip("JAX", "not installed")
except RuntimeError as error:
    check(False, f"JAX, {mode}: starts", str(error)[:120])
    end()


def loss_of(weights, inputs, labels):
    hidden = jax.nn.relu(inputs @ weights[0])
    return jnp.mean((hidden @ weights[1] - labels) ** 2)


@jax.jit
def step(weights, inputs, labels):
    loss, gradient = jax.value_and_grad(loss_of)(weights, inputs, labels)
    return [w - 0.01 * g for w, g in zip(weights, gradient)], loss


def train(steps):
    keys = jax.random.split(jax.random.PRNGKey(0), 4)
    weights = [jax.random.normal(keys[0], (256, 1024)) * 0.05, jax.random.normal(keys[1], (1024, 16)) * 0.05]
    inputs, labels = jax.random.normal(keys[2], (512, 256)), jax.random.normal(keys[3], (512, 16))
    first = last = None
    for _ in range(steps):
        weights, loss = step(weights, inputs, labels)
        first, last = first if first is not None else float(loss), loss
    return first, float(last)


if mode == "--footprint":
    nvml = Nvml()
    before = nvml.memory().used
    train(3)
    stats = jax.local_devices()[0].memory_stats() or {}
    pool = stats.get("pool_bytes", stats.get("bytes_reserved", stats.get("bytes_in_use", 0)))
    info("JAX: all it holds after a small training", f"{mib(nvml.memory().used - before)} (its own pool {mib(pool)})")
    end()

name = f"JAX {jax.__version__}, {mode}"
limit = grant() or 0
first, last = train(30)
check(last < first, f"{name}: trains", f"loss {first:.4f} to {last:.4f}")
stats = jax.local_devices()[0].memory_stats() or {}
if "bytes_limit" in stats:
    check(stats["bytes_limit"] <= limit, f"{name}: sized itself by the grant", f"{mib(stats['bytes_limit'])} of {mib(limit)}")
held, refused = [], None
try:
    while len(held) * 256 * MIB < limit + GIB:
        block = jnp.full((256 * MIB,), 7, dtype=jnp.uint8)
        block.block_until_ready()
        held.append(block)
except Exception as error:  # the class differs between versions of jaxlib
    refused = str(error).splitlines()[0]
got = len(held) * 256 * MIB
good = refused is not None and "RESOURCE_EXHAUSTED" in refused and got <= limit and got >= limit // 2
check(good, f"{name}: fills, refused as RESOURCE_EXHAUSTED", f"got {mib(got)} of {mib(limit)}: {(refused or 'NEVER REFUSED')[:70]}")
del held
again = train(30)[1]
check(abs(again - last) < 1e-3, f"{name}: goes on after the refusal", f"loss {again:.4f}")
end()
