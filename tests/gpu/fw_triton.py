#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Triton inside a cap: a compiled kernel (its launcher finds the driver by itself) gives the right result, and memory
it works on is capped.   mete cap --gpu 16G -- python3 tests/gpu/fw_triton.py"""
from rows import check, end, grant, mib, skip

try:
    import torch
    import triton
    import triton.language as tl
except ImportError:
    skip("Triton", "not installed")


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


name = f"Triton {triton.__version__}"
limit = grant() or 0
x = torch.rand(1 << 24, device="cuda")
y, out = torch.rand_like(x), torch.empty_like(x)
add[(x.numel() // 1024,)](x, y, out, x.numel(), BLOCK=1024)
check(torch.equal(out, x + y), f"{name}: a kernel computes")
refused = False
try:
    torch.empty(limit, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError:
    refused = True
check(refused, f"{name}: a tensor as large as the grant is refused", mib(limit))
add[(x.numel() // 1024,)](x, y, out, x.numel(), BLOCK=1024)
check(torch.equal(out, x + y), f"{name}: goes on after the refusal")
end()
