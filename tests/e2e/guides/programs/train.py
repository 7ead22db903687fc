# SPDX-License-Identifier: Apache-2.0
"""Stands for the programs of the guides: takes GPU memory through the driver, as any CUDA program does, and ends.

--gib N: as much on each card that it sees (default: a quarter). It ends with 1 if the driver has no memory, and works without a
card too. All other words are ignored.
"""
import ctypes
import sys

words = sys.argv[1:]
gib = float(words[words.index("--gib") + 1]) if "--gib" in words else 0.25
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError:
    sys.exit(print("no driver: runs on the CPU"))
count, context, block, total, free = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_size_t()
if cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
    sys.exit(print("no card: runs on the CPU"))
for card in range(count.value):
    if cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), card) != 0 or cuda.cuCtxSetCurrent(context) != 0:
        sys.exit("no memory for a context")
    if cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(int(gib * 2**30))) != 0:
        sys.exit(f"card {card}: CUDA_ERROR_OUT_OF_MEMORY")
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    print(f"card {card}: {gib} of {total.value / 2**30:.1f} GiB")
