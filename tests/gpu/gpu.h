// SPDX-License-Identifier: Apache-2.0
// What the programs of this folder share: the driver's functions (ways.h: found in every way that
// programs find them), NVML, and result rows. A row is one line, `ok|FAIL|info <tab> what <tab>
// value`, which tests/gpu/run collects; each program can be used alone. They need no toolkit and
// run over simgpu as well.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "abi/cuda_card.h"
#include "abi/nvml_api.h"

namespace gpu {

constexpr size_t kKiB = 1 << 10, kMiB = 1 << 20, kGiB = 1 << 30;
constexpr size_t kGranule = 2 * kMiB;    // physical memory comes in these
constexpr size_t kGrowth = 32 * kMiB;    // pools and graph memory grow in these
constexpr size_t kNothing = ~size_t{0};  // a reading that is not available

inline size_t round_up(size_t n, size_t step) { return (n + step - 1) / step * step; }

// ---- rows ----
inline int failures = 0;

__attribute__((format(printf, 1, 2))) inline std::string text(const char* format, ...) {
  char buffer[512];
  va_list args;
  va_start(args, format);
  vsnprintf(buffer, sizeof buffer, format, args);
  va_end(args);
  return buffer;
}
inline std::string mib(size_t bytes) {
  return bytes == kNothing ? "?" : text("%.1f MiB", static_cast<double>(bytes) / double{kMiB});
}
inline void info(const std::string& what, const std::string& value) {
  printf("info\t%s\t%s\n", what.c_str(), value.c_str());
  fflush(stdout);
}
inline bool check(bool good, const std::string& what, const std::string& value) {
  printf("%s\t%s\t%s\n", good ? "ok" : "FAIL", what.c_str(), value.c_str());
  fflush(stdout);
  failures += good ? 0 : 1;
  return good;
}
// What the program is about, for the row of a program that cannot go on.
inline std::string subject = "program";
[[noreturn]] inline void die(const std::string& what) {
  check(false, subject, what);
  exit(1);
}

// ---- the driver ----
// By the exported names: cuMemAlloc_v2 is today's, cuMemAlloc that of CUDA 3.1.
// (A list laid out by hand: clang-format 14 never settles on one.)
// clang-format off
#define GPU_FUNCTIONS(X) \
  X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuDeviceGet) X(cuDeviceGetCount) \
  X(cuDeviceGetUuid) X(cuDeviceTotalMem_v2) X(cuDeviceGetAttribute) X(cuDevicePrimaryCtxRetain) \
  X(cuDevicePrimaryCtxRelease_v2) X(cuCtxSetCurrent) X(cuCtxSynchronize) X(cuCtxSetLimit) \
  X(cuCtxCreate) X(cuCtxCreate_v2) X(cuCtxDestroy) X(cuCtxDestroy_v2) X(cuMemGetInfo) \
  X(cuMemGetInfo_v2) X(cuMemAlloc) X(cuMemAlloc_v2) X(cuMemFree) X(cuMemFree_v2) \
  X(cuMemAllocPitch) X(cuMemAllocPitch_v2) X(cuMemAllocManaged) X(cuMemsetD8_v2) \
  X(cuMemcpyDtoH_v2) X(cuMemCreate) X(cuMemRelease) X(cuMemMap) X(cuMemUnmap) X(cuMemSetAccess) \
  X(cuMemAddressReserve) X(cuMemAddressFree) X(cuMemRetainAllocationHandle) \
  X(cuMemExportToShareableHandle) X(cuMemImportFromShareableHandle) X(cuMemAllocAsync) \
  X(cuMemAllocAsync_ptsz) X(cuMemFreeAsync) X(cuMemFreeAsync_ptsz) X(cuMemAllocFromPoolAsync) \
  X(cuMemAllocFromPoolAsync_ptsz) X(cuMemPoolCreate) X(cuMemPoolDestroy) X(cuMemPoolTrimTo) \
  X(cuMemPoolGetAttribute) X(cuMemPoolSetAttribute) X(cuDeviceGetDefaultMemPool) \
  X(cuDeviceSetMemPool) X(cuDeviceGetGraphMemAttribute) X(cuDeviceGraphMemTrim) \
  X(cuArrayCreate) X(cuArrayCreate_v2) X(cuArray3DCreate) X(cuArray3DCreate_v2) \
  X(cuArrayDestroy) X(cuArrayGetMemoryRequirements) X(cuMipmappedArrayCreate) \
  X(cuMipmappedArrayDestroy) X(cuMipmappedArrayGetMemoryRequirements) X(cuStreamCreate) \
  X(cuStreamDestroy_v2) X(cuStreamSynchronize) X(cuStreamBeginCapture) \
  X(cuStreamBeginCapture_v2) X(cuStreamBeginCaptureToGraph) X(cuStreamEndCapture) \
  X(cuGraphCreate) X(cuGraphDestroy) X(cuGraphAddMemAllocNode) X(cuGraphAddEmptyNode) \
  X(cuGraphAddNode) X(cuGraphAddNode_v2) X(cuGraphInstantiate) X(cuGraphInstantiate_v2) \
  X(cuGraphInstantiateWithFlags) X(cuGraphInstantiateWithParams) \
  X(cuGraphInstantiateWithParams_ptsz) X(cuGraphUpload) X(cuGraphUpload_ptsz) X(cuGraphLaunch) \
  X(cuGraphLaunch_ptsz) X(cuGraphExecDestroy) X(cuIpcGetMemHandle) X(cuIpcOpenMemHandle_v2) \
  X(cuIpcCloseMemHandle) X(cuModuleLoadData) X(cuModuleUnload) X(cuModuleGetFunction) \
  X(cuLaunchKernel)
// clang-format on

struct Cuda {
#define X(name) decltype(&::name) name = nullptr;
  GPU_FUNCTIONS(X)
#undef X
};
inline Cuda cu;

inline std::string error_name(CUresult result) {
  const char* name = nullptr;
  if (cu.cuGetErrorName) (void)cu.cuGetErrorName(result, &name);
  return text("%s (%d)", name ? name : "?", static_cast<int>(result));
}
inline void must(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS) die(std::string(what) + ": " + error_name(result));
}

inline void* open_driver(const char* name) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) die(text("dlopen %s: %s", name, dlerror()));
  return library;
}

// How a program finds the driver's functions: from an exported name to an address (null: not
// found). ways.h has many; what is not about them uses dlopen and dlsym.
using Lookup = std::function<void*(const char* symbol)>;

inline Lookup dlsym_in(void* library) {
  return [library](const char* symbol) { return dlsym(library, symbol); };
}

inline void resolve(const Lookup& lookup) {
  std::string missing;
#define X(name)                                                 \
  cu.name = reinterpret_cast<decltype(&::name)>(lookup(#name)); \
  if (!cu.name) missing += " " #name;
  GPU_FUNCTIONS(X)
#undef X
  if (!missing.empty()) die("not found:" + missing);
}

inline CUdevice device = 0;
inline CUcontext context = nullptr;

inline CUresult begin() {
  if (const CUresult r = cu.cuInit(0); r != CUDA_SUCCESS) return r;
  if (const CUresult r = cu.cuDeviceGet(&device, 0); r != CUDA_SUCCESS) return r;
  if (const CUresult r = cu.cuDevicePrimaryCtxRetain(&context, device); r != CUDA_SUCCESS) return r;
  return cu.cuCtxSetCurrent(context);
}
inline CUresult try_start() {
  resolve(dlsym_in(open_driver("libcuda.so.1")));
  return begin();
}
inline void start() { must(try_start(), "start"); }

struct Memory {
  size_t free, total;
};
inline Memory memory() {
  Memory m{};
  must(cu.cuMemGetInfo_v2(&m.free, &m.total), "cuMemGetInfo");
  return m;
}

// The cap this program runs under, or kNothing.
inline size_t grant() {
  const char* value = getenv("METE_GPU_MEM_BYTES");
  return value ? strtoull(value, nullptr, 10) : kNothing;
}

inline CUmemAllocationProp on_card(bool exportable = false) {
  return mete::abi::memory_on(device, exportable);
}
inline CUmemAccessDesc read_write() { return mete::abi::access_on(device); }
inline CUmemPoolProps pool_on_card() { return mete::abi::pool_on(device); }
inline std::string uuid_of(CUdevice of) {
  CUuuid id{};
  must(cu.cuDeviceGetUuid(&id, of), "cuDeviceGetUuid");
  return mete::abi::uuid_text(id.bytes).text;
}
inline size_t pool_reserved(CUmemoryPool pool) {
  cuuint64_t bytes = 0;
  must(cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes),
       "pool attribute");
  return bytes;
}
inline size_t graph_reserved() {
  cuuint64_t bytes = 0;
  must(cu.cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes),
       "graph memory attribute");
  return bytes;
}

// ---- NVML ----
// (A list laid out by hand: clang-format 14 never settles on one.)
// clang-format off
#define GPU_NVML(X) \
  X(nvmlInit_v2) X(nvmlShutdown) X(nvmlDeviceGetHandleByUUID) X(nvmlDeviceGetMemoryInfo) \
  X(nvmlDeviceGetMemoryInfo_v2) X(nvmlDeviceGetComputeRunningProcesses_v3) \
  X(nvmlDeviceGetCount_v2) X(nvmlDeviceGetHandleByIndex_v2)
// clang-format on

struct Nvml {
#define X(name) decltype(&::name) name = nullptr;
  GPU_NVML(X)
#undef X
  nvmlDevice_t card = nullptr;

  // Opens NVML and finds the card that CUDA calls 0 (by UUID: the orders may differ).
  void open(CUdevice of = 0) {
    void* library = open_driver("libnvidia-ml.so.1");
#define X(name)                                                   \
  name = reinterpret_cast<decltype(name)>(dlsym(library, #name)); \
  if (!name) die("NVML has no " #name);
    GPU_NVML(X)
#undef X
    if (nvmlInit_v2() != NVML_SUCCESS) die("nvmlInit failed");
    const std::string name = uuid_of(of);
    if (nvmlDeviceGetHandleByUUID(name.c_str(), &card) != NVML_SUCCESS)
      die("NVML does not know " + name);
  }
  size_t used() const {
    nvmlMemory_t m{};
    return nvmlDeviceGetMemoryInfo(card, &m) == NVML_SUCCESS ? m.used : kNothing;
  }
  size_t free() const {
    nvmlMemory_t m{};
    return nvmlDeviceGetMemoryInfo(card, &m) == NVML_SUCCESS ? m.free : kNothing;
  }
  std::vector<nvmlProcessInfo_t> processes() const {
    std::vector<nvmlProcessInfo_t> list(512);
    unsigned int count = static_cast<unsigned int>(list.size());
    if (nvmlDeviceGetComputeRunningProcesses_v3(card, &count, list.data()) != NVML_SUCCESS)
      count = 0;
    list.resize(count);
    return list;
  }
  // What NVML says this process holds; kNothing where pids are not those of this pid namespace.
  size_t used_by(pid_t pid) const {
    for (const nvmlProcessInfo_t& p : processes())
      if (p.pid == static_cast<unsigned int>(pid)) return p.usedGpuMemory;
    return kNothing;
  }
};

// ---- time ----
inline double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace gpu
