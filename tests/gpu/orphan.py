#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does GPU memory stay taken after its owner's death while a child that it forked (without exec) still lives? Outside a
cap. Prints one row.
"""
import ctypes
import os
import signal
import time

from rows import GIB, Nvml, info, mib

nvml = Nvml()
before = nvml.memory().used
told, tell = os.pipe()
owner = os.fork()
if owner == 0:
    cuda = ctypes.CDLL("libcuda.so.1")
    context, block = ctypes.c_void_p(), ctypes.c_uint64()
    cuda.cuInit(0)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    cuda.cuCtxSetCurrent(context)
    cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(2 * GIB))
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    os.write(tell, b"%d" % child)
    time.sleep(60)
    os._exit(0)
child = int(os.read(told, 20))
held = nvml.memory().used - before
os.kill(owner, signal.SIGKILL)
os.waitpid(owner, 0)
time.sleep(0.5)
orphaned = nvml.memory().used - before
os.kill(child, signal.SIGKILL)
for _ in range(100):
    after = nvml.memory().used - before
    if after < GIB:
        break
    time.sleep(0.05)
info("owner killed, its forked child lives", f"the card holds {mib(orphaned)} of {mib(held)}; {mib(after)} after the child's death")
