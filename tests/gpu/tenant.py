#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An ordinary program on its share of a card, for daemon.py. Prints one JSON line.
    tenant.py hold   what it sees, while it holds 2 GiB; after a line on its input it takes all it can get and says how much
    tenant.py rank   one of several processes (--procs): sums over all by torch.distributed, then fills its part
With PyTorch where installed; `hold` by the driver's functions otherwise."""
import ctypes
import json
import os
import shutil
import subprocess
import sys

from rows import GIB, MIB, Nvml, grant

try:
    import torch
except ImportError:
    torch = None


class Torch:
    """The card by PyTorch."""

    def __init__(self):
        self.held = []

    def total(self):
        return torch.cuda.get_device_properties(0).total_memory

    def take(self, size):
        try:
            self.held.append(torch.empty(size, dtype=torch.uint8, device="cuda").fill_(7))
        except torch.cuda.OutOfMemoryError:
            return False
        torch.cuda.synchronize()
        return True


class Driver:
    """The card by the driver's own functions."""

    def __init__(self):
        self.lib = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        for code in (self.lib.cuInit(0), self.lib.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), self.lib.cuCtxSetCurrent(context)):
            if code != 0:
                raise RuntimeError(f"CUDA error {code}")

    def total(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.lib.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
        return total.value

    def take(self, size):
        return self.lib.cuMemAlloc_v2(ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(size)) == 0


def fill(card, limit):
    got = 0
    while got <= limit and card.take(256 * MIB):
        got += 256 * MIB
    return got


def smi():
    """The size of the card as nvidia-smi shows it in here, in MiB."""
    if not shutil.which("nvidia-smi"):
        return None
    done = subprocess.run(["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"], capture_output=True, text=True)
    return [int(line) for line in done.stdout.split() if line.isdigit()]


def say(**facts):
    sys.stdout.write(json.dumps(facts) + "\n")  # in one piece: several ranks write into one pipe
    sys.stdout.flush()


def hold():
    card = Torch() if torch else Driver()
    total = card.total()
    card.take(2 * GIB)
    say(pid=os.getpid(), total=total, nvml=Nvml().memory().total, smi=smi(), devices=os.environ.get("CUDA_VISIBLE_DEVICES"))
    if sys.stdin.readline():
        say(got=2 * GIB + fill(card, grant()))


def rank():
    import torch.distributed as dist
    dist.init_process_group("gloo")
    number = torch.full((1024,), dist.get_rank() + 1.0, device="cuda")
    dist.all_reduce(number)
    card = Torch()
    total = card.total()
    dist.barrier()  # all fill at once
    got = fill(card, total)
    dist.barrier()
    say(rank=dist.get_rank(), world=dist.get_world_size(), sum=number[0].item(), total=total, got=got)
    dist.destroy_process_group()


{"hold": hold, "rank": rank}[sys.argv[1]]()
