#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CuPy inside a cap, with both of its pools.   mete cap --gpu 16G -- python3 tests/gpu/fw_cupy.py
`--footprint` (outside a cap): what CuPy's libraries load into the context beyond a bare one."""
import sys

from rows import GIB, MIB, Nvml, check, end, grant, info, mib, skip

try:
    import cupy
except ImportError:
    skip("CuPy", "not installed")


def work():
    a = cupy.arange(1 << 20, dtype=cupy.float32).reshape(1024, 1024) % 7
    return float((a @ a).sum())


def fill(name, limit):
    held, refused = [], None
    try:
        while len(held) * 256 * MIB < limit + GIB:
            held.append(cupy.full(256 * MIB, 7, dtype=cupy.uint8))
    except cupy.cuda.memory.OutOfMemoryError as error:
        refused = str(error)
    except cupy.cuda.runtime.CUDARuntimeError as error:  # the asynchronous pool passes the runtime's own error
        refused = str(error)
    got = len(held) * 256 * MIB
    good = refused is not None and "memory" in refused.lower() and limit - 3 * GIB <= got <= limit
    check(good, f"{name}: fills the grant, refused as out of memory", f"got {mib(got)} of {mib(limit)}: {(refused or 'NEVER REFUSED')[:60]}")


if "--footprint" in sys.argv:
    nvml = Nvml()
    before = nvml.memory().used
    cupy.cuda.runtime.free(0)
    bare = nvml.memory().used - before
    work()
    pool = cupy.get_default_memory_pool().total_bytes()
    info("CuPy: libraries beyond the context", f"{mib(nvml.memory().used - before - bare - pool)} (context {mib(bare)}, pool {mib(pool)})")
    end()

name = f"CuPy {cupy.__version__}"
limit = grant() or 0
free, total = cupy.cuda.runtime.memGetInfo()
properties = cupy.cuda.runtime.getDeviceProperties(0)["totalGlobalMem"]
check(total == limit and properties == limit, f"{name}: sees the grant", f"memGetInfo {mib(total)}, properties {mib(properties)}")
first = work()
fill(f"{name}, default pool", limit)
cupy.get_default_memory_pool().free_all_blocks()
check(work() == first, f"{name}, default pool: goes on after the refusal")
cupy.get_default_memory_pool().free_all_blocks()
cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
fill(f"{name}, asynchronous pool", limit)
check(work() == first, f"{name}, asynchronous pool: goes on after the refusal")
end()
