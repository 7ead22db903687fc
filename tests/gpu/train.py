#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training loop that always computes the same: prints `loss X` and `step_ms Y` (median).   train.py [STEPS]"""
import os
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100
torch.use_deterministic_algorithms(True, warn_only=True)
torch.backends.cudnn.benchmark = False
torch.manual_seed(1)
net = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(2048, 2048), torch.nn.GELU()) for _ in range(8)],
                          torch.nn.Linear(2048, 16)).cuda()
optimiser = torch.optim.SGD(net.parameters(), 1e-2)
inputs, target = torch.randn(1024, 2048).cuda(), torch.randn(1024, 16).cuda()
times = []
for _ in range(steps):
    begin = time.perf_counter()
    optimiser.zero_grad()
    # The sum of a fresh buffer in each step keeps the allocator busy.
    noise = torch.zeros(4096, 4096, device="cuda")
    loss = torch.nn.functional.mse_loss(net(inputs) + noise[:1024, :16], target)
    loss.backward()
    optimiser.step()
    torch.cuda.synchronize()
    times.append(time.perf_counter() - begin)
print("loss", loss.item().hex())
print("step_ms", sorted(times)[len(times) // 2] * 1e3)
