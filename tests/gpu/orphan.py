#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A process that holds GPU memory forks a child without exec and is killed. Outside a cap: does the card keep the memory, and to
whom does NVML count it? Inside a cap: the books must say the same as the card, so a neighbour gets the rest and not a byte more.
"""
import ctypes
import os
import signal
import time

from rows import GIB, MIB, Nvml, check, end, grant, info, mib

OOM = 2


class Cuda:
    def __init__(self):
        self.lib = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.must(self.lib.cuInit(0))
        self.must(self.lib.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
        self.must(self.lib.cuCtxSetCurrent(context))
        self.blocks = []

    def must(self, code):
        if code != 0:
            raise RuntimeError(f"CUDA error {code}")

    def take(self, size):
        block = ctypes.c_uint64()
        code = self.lib.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(size))
        if code == 0:
            self.blocks.append(block)
        return code

    def drop(self):
        for block in self.blocks:
            self.must(self.lib.cuMemFree_v2(block))
        self.blocks = []

    def free(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.must(self.lib.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
        return free.value


class Family:
    """An owner of 2 GiB and its forked child."""

    def __init__(self):
        told, tell = os.pipe()
        self.owner = os.fork()
        if self.owner == 0:
            Cuda().take(2 * GIB)
            child = os.fork()
            if child == 0:
                time.sleep(60)
                os._exit(0)
            os.write(tell, b"%d" % child)
            time.sleep(60)
            os._exit(0)
        self.child = int(os.read(told, 20))

    def kill_owner(self):
        os.kill(self.owner, signal.SIGKILL)
        os.waitpid(self.owner, 0)

    def kill_child(self):
        os.kill(self.child, signal.SIGKILL)
        while os.path.exists(f"/proc/{self.child}"):
            time.sleep(0.005)


def outside():
    nvml = Nvml()
    before = nvml.memory().used
    family = Family()
    held = nvml.memory().used - before
    family.kill_owner()
    time.sleep(0.5)
    orphaned = nvml.memory().used - before
    names = {family.owner: "the dead owner", family.child: "the child"}
    listed = [f"{names.get(pid, 'somebody')} {mib(used)}" for pid, used in nvml.processes().items()]
    family.kill_child()
    for _ in range(100):
        after = nvml.memory().used - before
        if after < GIB:
            break
        time.sleep(0.05)
    info("owner killed, its forked child lives",
         f"the card holds {mib(orphaned)} of {mib(held)}; {mib(after)} after the child's death")
    info("to whom NVML counts it then", ", ".join(listed) or "nobody")


def inside():
    cuda = None
    family = Family()  # before this process has a context: a fork would inherit it
    cuda = Cuda()
    free = cuda.free()
    family.kill_owner()
    check(abs(cuda.free() - free) <= 64 * MIB, "forked child: a dead owner's memory stays charged", mib(cuda.free()))
    got = 0
    while cuda.take(16 * MIB) == 0:
        got += 16 * MIB
    check(free - 16 * MIB <= got <= free, "forked child: a neighbour gets the rest and no more", f"{mib(got)} of {mib(free)}")
    cuda.drop()
    family.kill_child()
    check(cuda.take(free + 2 * GIB) == 0, "forked child: all of it at the first attempt after its end", mib(free + 2 * GIB))


if grant() is None:
    outside()
else:
    inside()
end()
