#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch inside a cap: trains, captures a CUDA graph, fills the grant until it is refused, recovers, trains again.
    mete cap --gpu 16G -- python3 tests/gpu/fw_torch.py default|expandable|async
`--footprint` (outside a cap): what PyTorch's libraries load into the context beyond a bare one.
"""
import os
import sys

from rows import GIB, MIB, Nvml, check, end, grant, info, mib, skip

mode = sys.argv[1] if len(sys.argv) > 1 else "default"
settings = {"expandable": "expandable_segments:True", "async": "backend:cudaMallocAsync"}
if mode in settings:
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = settings[mode]
try:
    import torch
except ImportError:
    skip("PyTorch", "not installed")

device = torch.device("cuda")


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 64, 3, padding=1), torch.nn.BatchNorm2d(64), torch.nn.ReLU(), torch.nn.MaxPool2d(4),
        torch.nn.Flatten(), torch.nn.Linear(64 * 16 * 16, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).to(device)


def train(steps):
    net = model()
    optimiser = torch.optim.AdamW(net.parameters(), 1e-4)
    inputs, labels = torch.randn(64, 3, 64, 64, device=device), torch.randint(10, (64,), device=device)
    first = loss = None
    for _ in range(steps):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(inputs), labels)
        first = loss.item() if first is None else first
        loss.backward()
        optimiser.step()
    return first, loss.item()


def graph():
    static = torch.zeros(1024, 1024, device=device)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        static @ static
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        out = static @ static + 1
    static.fill_(1)
    captured.replay()
    return out[0, 0].item()


def footprint():
    nvml = Nvml()
    before = nvml.memory().used
    torch.cuda.init()
    torch.cuda.current_stream().synchronize()
    bare = nvml.memory().used - before
    info("PyTorch: context", mib(bare))
    train(3)
    torch.cuda.synchronize()
    reserved = torch.cuda.memory_reserved()
    after = nvml.memory().used - before
    info("PyTorch: libraries beyond the context after training (cuDNN, cuBLAS)",
         f"{mib(after - bare - reserved)} (all {mib(after)}, PyTorch's own {mib(reserved)})")


if mode == "--footprint":
    footprint()
    end()

name = f"PyTorch {torch.__version__}, {mode}"
free, total = torch.cuda.mem_get_info()
properties = torch.cuda.get_device_properties(0).total_memory
limit = grant() or properties
check(total == limit and properties == limit, f"{name}: sees the grant", f"mem_get_info {mib(total)}, properties {mib(properties)}")
first, loss = train(20)
check(loss < first, f"{name}: trains", f"loss {first:.4f} to {loss:.4f}")
check(graph() == 1025.0, f"{name}: CUDA graph")

held = []
refused = None
try:
    while len(held) * 256 * MIB < limit + GIB:
        held.append(torch.empty(256 * MIB, dtype=torch.uint8, device=device).fill_(7))
except torch.cuda.OutOfMemoryError as error:
    refused = str(error).splitlines()[0]
torch.cuda.synchronize()
got = len(held) * 256 * MIB
check(refused is not None and limit - 3 * GIB <= got <= limit, f"{name}: fills the grant, refused as out of memory",
      f"got {mib(got)} of {mib(limit)}: {(refused or 'NEVER REFUSED')[:70]}")
check(all(int(h[-1]) == 7 for h in held), f"{name}: what it holds is intact")
del held
torch.cuda.empty_cache()
again = train(20)[1]
check(abs(again - loss) <= 0.05, f"{name}: goes on after the refusal", f"loss {again:.6f}")
end()
