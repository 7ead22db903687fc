#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program for sweeps: its memory depends on batch size and width, it always computes the same, and it waits for its input
more than for the card.   sweep_model.py --batch N --width N --lr X [--steps N]   prints `loss X` and `hex H` of the last step"""
import argparse
import json
import os

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, required=True)
parser.add_argument("--width", type=int, required=True)
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--steps", type=int, default=30)
words = parser.parse_args()

LENGTH, LAYERS, SLICE = 512, 4, 1 << 20
torch.manual_seed(1)
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True, warn_only=True)


class Gate(torch.nn.Module):
    """Scales each feature by a gate that it learns: cheap for the card, and its activations fill it."""

    def __init__(self, width):
        super().__init__()
        self.scale, self.shift = torch.nn.Parameter(torch.ones(width)), torch.nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return x * torch.sigmoid(x * self.scale + self.shift)


model = torch.nn.Sequential(*[Gate(words.width) for _ in range(LAYERS)]).cuda()
optimiser = torch.optim.SGD(model.parameters(), words.lr)
metrics = open(os.environ.get("METE_METRICS", os.devnull), "a")
noise = torch.Generator().manual_seed(2)
for step in range(1, words.steps + 1):
    for _ in range(12):  # the input of a step is made by the CPU
        sample = torch.randn(SLICE, generator=noise)
    batch = sample[:words.width].cuda().expand(words.batch, LENGTH, words.width).contiguous()
    optimiser.zero_grad()
    loss = (model(batch) - 1).square().mean()
    loss.backward()
    optimiser.step()
    value = loss.item()
    print(json.dumps({"step": step, "loss": value}), file=metrics, flush=True)
print(f"loss {value}\nhex {value.hex()}", flush=True)
