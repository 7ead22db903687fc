#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training loop that always computes the same.
    train.py [STEPS]   prints `loss X`, `curve HASH` (of the losses of all steps) and `step_ms Y` (median)
    train.py turns     for turns.py: trains a little for each line of its input, prints how long a step took; at the end `loss X`
"""
import hashlib
import os
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch

TURN = 50  # steps
curve = hashlib.sha256()
torch.use_deterministic_algorithms(True, warn_only=True)
torch.backends.cudnn.benchmark = False
torch.manual_seed(1)
net = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(2048, 2048), torch.nn.GELU()) for _ in range(8)],
                          torch.nn.Linear(2048, 16)).cuda()
optimiser = torch.optim.SGD(net.parameters(), 1e-2)
inputs, target = torch.randn(1024, 2048).cuda(), torch.randn(1024, 16).cuda()


def train(steps):
    """Returns the loss and the median time of a step in seconds."""
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
        curve.update(loss.item().hex().encode())
    return loss.item(), sorted(times)[len(times) // 2]


if sys.argv[1:] == ["turns"]:
    for _ in iter(sys.stdin.readline, ""):
        loss, step = train(TURN)
        print(f"cost\tstep\t{step * 1e9}\ndone", flush=True)
    print("loss", loss.hex())
else:
    loss, step = train(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
    print("loss", loss.hex())
    print("curve", curve.hexdigest()[:16])
    print("step_ms", step * 1e3)
