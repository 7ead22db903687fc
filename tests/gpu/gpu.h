// SPDX-License-Identifier: Apache-2.0
// What the programs of this folder share: the driver's functions found in every way that programs
// find them, NVML, and result rows. A row is one line, `ok|FAIL|info <tab> what <tab> value`, which
// tests/gpu/run collects; each program can be used alone. They need no toolkit and run over simgpu
// as well.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "abi/cuda_api.h"
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
[[noreturn]] inline void die(const std::string& what) {
  check(false, "program", what);
  exit(1);
}

// ---- the driver ----
// Those that change shape between versions (cuGraphAddNode_v2, cuStreamBeginCapture_v2) are marked:
// an old version asked by name would be another function.
// (A list laid out by hand: clang-format 14 never settles on one.)
// clang-format off
#define GPU_FUNCTIONS(X, Y) \
  X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuDeviceGet) X(cuDeviceGetCount) \
  X(cuDeviceGetUuid) X(cuDeviceTotalMem_v2) X(cuDeviceGetAttribute) X(cuDevicePrimaryCtxRetain) \
  X(cuDevicePrimaryCtxRelease_v2) X(cuCtxSetCurrent) X(cuCtxSynchronize) X(cuCtxSetLimit) \
  X(cuCtxDestroy_v2) X(cuMemGetInfo_v2) X(cuMemAlloc_v2) X(cuMemFree_v2) X(cuMemAllocPitch_v2) \
  X(cuMemAllocManaged) X(cuMemsetD8_v2) X(cuMemcpyDtoH_v2) X(cuMemCreate) X(cuMemRelease) \
  X(cuMemMap) X(cuMemUnmap) X(cuMemSetAccess) X(cuMemAddressReserve) X(cuMemAddressFree) \
  X(cuMemRetainAllocationHandle) X(cuMemExportToShareableHandle) \
  X(cuMemImportFromShareableHandle) X(cuMemAllocAsync) X(cuMemFreeAsync) \
  X(cuMemAllocFromPoolAsync) X(cuMemPoolCreate) X(cuMemPoolDestroy) X(cuMemPoolTrimTo) \
  X(cuMemPoolGetAttribute) X(cuMemPoolSetAttribute) X(cuDeviceGetDefaultMemPool) \
  X(cuDeviceGetGraphMemAttribute) X(cuDeviceGraphMemTrim) X(cuArrayCreate_v2) \
  X(cuArray3DCreate_v2) X(cuArrayDestroy) X(cuArrayGetMemoryRequirements) \
  X(cuMipmappedArrayCreate) X(cuMipmappedArrayDestroy) X(cuMipmappedArrayGetMemoryRequirements) \
  X(cuStreamCreate) X(cuStreamDestroy_v2) X(cuStreamSynchronize) X(cuStreamEndCapture) \
  X(cuGraphCreate) X(cuGraphDestroy) X(cuGraphAddMemAllocNode) X(cuGraphAddEmptyNode) \
  X(cuGraphInstantiateWithFlags) X(cuGraphLaunch) X(cuGraphExecDestroy) X(cuIpcGetMemHandle) \
  X(cuIpcOpenMemHandle_v2) X(cuIpcCloseMemHandle) X(cuModuleLoadData) X(cuModuleUnload) \
  X(cuModuleGetFunction) X(cuLaunchKernel) Y(cuStreamBeginCapture_v2) Y(cuGraphAddNode_v2) \
  Y(cuCtxCreate_v2) Y(cuMemAllocAsync_ptsz) Y(cuMemFreeAsync_ptsz)
// clang-format on

struct Cuda {
#define X(name) decltype(&::name) name = nullptr;
  GPU_FUNCTIONS(X, X)
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

// How a program may find the driver's functions. `linked` is the program built against a stub
// (GPU_LINKED).
inline const std::vector<std::string>& ways() {
  static const std::vector<std::string> all = {"dlopen",     "dlopen-short", "default", "gpa",
                                               "gpa-legacy", "gpa-ptds",     "gpa-v1",  "gpa-old"};
  return all;
}

inline std::string plain_name(const char* exported) {
  std::string name = exported;
  const size_t at = name.find("_v");
  if (at != std::string::npos && at + 3 == name.size()) name.resize(at);
  return name;
}

// Exact symbol for what is marked Y; by base name and version for the rest, as a runtime asks.
inline void* find(const std::string& way, void* library, const char* name, bool changes_shape) {
  if (way == "default") return dlsym(RTLD_DEFAULT, name);
  if (way.rfind("gpa", 0) != 0 || changes_shape) return dlsym(library, name);
  const std::string plain = plain_name(name);
  void* found = nullptr;
  const auto v1 =
      reinterpret_cast<decltype(&::cuGetProcAddress)>(dlsym(library, "cuGetProcAddress"));
  const auto v2 =
      reinterpret_cast<decltype(&::cuGetProcAddress_v2)>(dlsym(library, "cuGetProcAddress_v2"));
  if (way == "gpa-v1") {
    (void)v1(plain.c_str(), &found, 12000, CU_GET_PROC_ADDRESS_DEFAULT);
    return found;
  }
  const cuuint64_t flags = way == "gpa-legacy" ? CU_GET_PROC_ADDRESS_LEGACY_STREAM
                           : way == "gpa-ptds" ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                                               : CU_GET_PROC_ADDRESS_DEFAULT;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (way != "gpa-old") {
    (void)v2(plain.c_str(), &found, 12000, flags, &status);
    return found;
  }
  for (const int version : {3020, 4000, 4010, 5000, 6000, 7000, 8000, 9000, 10000, 11000, 11010,
                            11020, 11030, 11040, 12000})
    if (v2(plain.c_str(), &found, version, flags, &status) == CUDA_SUCCESS && found) return found;
  return nullptr;
}

inline void resolve(const std::string& way) {
#ifdef GPU_LINKED
  (void)way;
#define X(name) cu.name = &::name;
  GPU_FUNCTIONS(X, X)
#undef X
#else
  void* library = open_driver(way == "dlopen-short" ? "libcuda.so" : "libcuda.so.1");
  if (way == "default") library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  std::string missing;
#define X(name)                                                                    \
  cu.name = reinterpret_cast<decltype(&::name)>(find(way, library, #name, false)); \
  if (!cu.name) missing += " " #name;
#define Y(name)                                                                   \
  cu.name = reinterpret_cast<decltype(&::name)>(find(way, library, #name, true)); \
  if (!cu.name) missing += " " #name;
  GPU_FUNCTIONS(X, Y)
#undef X
#undef Y
  if (!missing.empty()) die("not found by " + way + ":" + missing);
#endif
}

inline CUdevice device = 0;
inline CUcontext context = nullptr;

inline CUresult try_start(const std::string& way = "dlopen") {
  resolve(way);
  if (const CUresult r = cu.cuInit(0); r != CUDA_SUCCESS) return r;
  if (const CUresult r = cu.cuDeviceGet(&device, 0); r != CUDA_SUCCESS) return r;
  if (const CUresult r = cu.cuDevicePrimaryCtxRetain(&context, device); r != CUDA_SUCCESS) return r;
  return cu.cuCtxSetCurrent(context);
}
inline void start(const std::string& way = "dlopen") { must(try_start(way), "start"); }

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
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = device;
  if (exportable) prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return prop;
}
inline CUmemAccessDesc read_write() {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return access;
}
inline CUmemPoolProps pool_on_card() {
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  props.location.id = device;
  return props;
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
    CUuuid id{};
    must(cu.cuDeviceGetUuid(&id, of), "cuDeviceGetUuid");
    std::string name = "GPU-";
    for (int i = 0; i < 16; i++)
      name += text("%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                   static_cast<unsigned char>(id.bytes[i]));
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
