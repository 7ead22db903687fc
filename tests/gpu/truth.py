#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One truth: inside a cap every tool agrees on the size of the card and on what is used.
    mete cap --gpu 16G -- python3 tests/gpu/truth.py
"""
import ctypes
import os
import shutil
import subprocess

from rows import MIB, Nvml, check, end, grant, info, mib

cuda = ctypes.CDLL("libcuda.so.1")


def must(result, what):
    if result != 0:
        check(False, f"truth: {what}", f"error {result}")
        end()


def cuda_memory():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    must(cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)), "cuMemGetInfo")
    return free.value, total.value


def runtime_properties():
    """totalGlobalMem by the CUDA runtime, through whichever package is there; None without one."""
    try:
        import torch
        return torch.cuda.get_device_properties(0).total_memory
    except ImportError:
        pass
    try:
        import cupy
        return cupy.cuda.runtime.getDeviceProperties(0)["totalGlobalMem"]
    except ImportError:
        return None


def smi(*query):
    return subprocess.run(["nvidia-smi", *query], capture_output=True, text=True, timeout=60).stdout.strip()


limit = grant()
if limit is None:
    check(False, "truth", "run me inside a cap")
    end()

device, context, total = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_size_t()
nvml = Nvml()  # before CUDA, as PyTorch does
must(cuda.cuInit(0), "cuInit")
must(cuda.cuDeviceGet(ctypes.byref(device), 0), "cuDeviceGet")
no_context = cuda.cuMemGetInfo_v2(ctypes.byref(total), ctypes.byref(total))
check(no_context == 201, "truth: cuMemGetInfo without a context passes the driver's 201", no_context)
must(cuda.cuDeviceTotalMem_v2(ctypes.byref(total), device), "cuDeviceTotalMem")
must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device), "context")
must(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
check(cuda.cuMemGetInfo_v2(None, None) in (0, 1), "truth: NULL arguments do no harm")

pointer = ctypes.c_uint64()
must(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(1000 * MIB)), "cuMemAlloc")
free, cu_total = cuda_memory()
one, two = nvml.memory(), nvml.memory2()
sizes = {"cuDeviceTotalMem": total.value, "cuMemGetInfo": cu_total, "NVML": one.total, "NVML v2": two.total}
check(set(sizes.values()) == {limit}, "truth: size of the card", ", ".join(f"{k} {mib(v)}" for k, v in sizes.items()))
frees = {"cuMemGetInfo": free, "NVML": one.free, "NVML v2": two.free}
check(len(set(frees.values())) == 1, "truth: free", ", ".join(f"{k} {mib(v)}" for k, v in frees.items()))
check(one.used + one.free == one.total, "truth: NVML used + free = total", mib(one.used))
check(two.used + two.free + two.reserved == two.total, "truth: NVML v2 used + free + reserved = total", mib(two.used))
check(one.used >= 1000 * MIB, "truth: what was allocated is used", mib(one.used))

properties = runtime_properties()
if properties is not None:
    check(properties == limit, "truth: cudaGetDeviceProperties.totalGlobalMem", mib(properties))

visible = [v for v in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if v]
check(nvml.count() == len(visible), "truth: NVML lists the granted cards only", f"{nvml.count()} of {len(visible)}")
processes = nvml.processes()
check(os.getpid() in processes, "truth: NVML lists this process by its own pid", f"{os.getpid()} in {sorted(processes)}")
info("truth: NVML's figure for this process", mib(processes.get(os.getpid(), 0)))



def fill_by_ctypes(name):
    """ctypes finds the meter under both names: what it gets ends at the grant."""
    library, chunk, blocks, result = ctypes.CDLL(name), 16 * MIB, [], 0
    before = cuda_memory()[0]
    while result == 0 and len(blocks) * chunk < before + 1024 * MIB:
        p = ctypes.c_uint64()
        result = library.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(chunk))
        if result == 0:
            blocks.append(p)
    got = len(blocks) * chunk
    for p in blocks:
        must(library.cuMemFree_v2(p), "cuMemFree")
    check(result == 2 and before - chunk < got <= before, f"ctypes, {name}: fills the grant", f"got {mib(got)} of {mib(before)}, code {result}")


fill_by_ctypes("libcuda.so.1")
fill_by_ctypes("libcuda.so")

if shutil.which("nvidia-smi"):
    answer = smi("--query-gpu=memory.total,memory.used,memory.free", "--format=csv,noheader,nounits")
    total_mib, used_mib, free_mib = (int(n) for n in answer.splitlines()[0].split(","))
    now_free = cuda_memory()[0]
    check(abs(total_mib * MIB - limit) <= MIB and abs(free_mib * MIB - now_free) <= 2 * MIB, "truth: nvidia-smi agrees",
          f"total {total_mib}, used {used_mib}, free {free_mib} MiB")
    check(len(smi("-L").splitlines()) == len(visible), "truth: nvidia-smi -L lists the granted cards only", smi("-L"))
else:
    info("truth: nvidia-smi", "not installed here")
end()
