#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# program.c through ctypes, as many Python packages reach the driver.
import ctypes
import sys

cuda = ctypes.CDLL(sys.argv[1])


def need(result, what):
    if result != 0:
        sys.exit(f"{what}: {result}")


context, block = ctypes.c_void_p(), ctypes.c_uint64()
before, after, total = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_size_t()
need(cuda.cuInit(0), "cuInit")
need(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "retain")
need(cuda.cuCtxSetCurrent(context), "set current")
need(cuda.cuMemGetInfo_v2(ctypes.byref(before), ctypes.byref(total)), "info")
need(cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(3 << 20)), "alloc")
need(cuda.cuMemGetInfo_v2(ctypes.byref(after), ctypes.byref(total)), "info")
data = b"ctypes" * 1000
need(cuda.cuMemcpyHtoD_v2(block, data, ctypes.c_size_t(len(data))), "copy in")
back = ctypes.create_string_buffer(len(data))
need(cuda.cuMemcpyDtoH_v2(back, block, ctypes.c_size_t(len(data))), "copy out")
if back.raw != data:
    sys.exit("contents differ")
need(cuda.cuMemFree_v2(block), "free")
print(before.value - after.value)
