// SPDX-License-Identifier: Apache-2.0
// Modules, libraries and launches: what they take from the card, and that built-in kernels work.
// Each scenario loads images, launches kernels and prints the used bytes of the card after every
// step; module_test.cc compares the values.
#include "probe.h"

extern "C" CUresult cuLinkCreate_v2(unsigned int, CUjit_option*, void**, void**);
extern "C" CUresult cuLinkAddData_v2(void*, int, void*, size_t, const char*, unsigned int,
                                     CUjit_option*, void**);
extern "C" CUresult cuLinkComplete(void*, void**, size_t*);
extern "C" CUresult cuLinkDestroy(void*);
extern "C" CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int*, CUfunction, int, size_t);

namespace {
using probe::kMiB;
using probe::say;

const char kPtx[] =
    "//\n.version 7.0\n.target sm_70\n.address_size 64\n"
    ".global .align 4 .b8 table[8388608];\n"
    ".visible .global .align 8 .u64 counter;\n"
    ".visible .entry first(\n .param .u64 first_param_0,\n .param .u32 first_param_1\n)\n{\n "
    "ret;\n}\n"
    ".visible .entry second()\n{\n .local .align 4 .b8 __local_depot0[512];\n ret;\n}\n";

CUmodule load(const char* text) {
  CUmodule module = nullptr;
  OK(CU(cuModuleLoadData)(&module, text));
  return module;
}

CUfunction function(CUmodule module, const char* name) {
  CUfunction found = nullptr;
  OK(CU(cuModuleGetFunction)(&found, module, name));
  return found;
}

CUresult launch(CUfunction f, void** arguments = nullptr) {
  return CU(cuLaunchKernel)(f, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr);
}

void globals() {
  probe::start();
  const long long before = probe::used();
  CUmodule module = load("simgpu-module 1\nglobal big 536870912\nglobal small 100\nkernel k\n");
  say("loaded", probe::used() - before);
  CUdeviceptr pointer = 0;
  size_t bytes = 0;
  OK(CU(cuModuleGetGlobal_v2)(&pointer, &bytes, module, "big"));
  say("big_bytes", static_cast<long long>(bytes));
  OK(CU(cuMemsetD8_v2)(pointer, 0x11, bytes));
  unsigned char last = 0;
  OK(CU(cuMemcpyDtoH_v2)(&last, pointer + bytes - 1, 1));
  say("last_byte", last);
  OK(CU(cuModuleGetGlobal_v2)(&pointer, &bytes, module, "small"));
  say("small_bytes", static_cast<long long>(bytes));
  say("no_global", CU(cuModuleGetGlobal_v2)(&pointer, &bytes, module, "absent"));
  CUfunction f = nullptr;
  say("no_function", CU(cuModuleGetFunction)(&f, module, "absent"));
  OK(CU(cuModuleUnload)(module));
  say("unloaded", probe::used() - before);
  CUmodule same = nullptr;
  OK(CU(cuModuleLoadDataEx)(&same, "simgpu-module 1\nglobal big 536870912\n", 0, nullptr, nullptr));
  say("with_options", probe::used() - before);
  OK(CU(cuModuleUnload)(same));
  CUmodule bad = nullptr;
  say("no_file", CU(cuModuleLoad)(&bad, "/nonexistent"));
  say("not_a_module", CU(cuModuleLoadData)(&bad, "hello, world\n"));
  say("too_big", CU(cuModuleLoadData)(&bad, "simgpu-module 1\nglobal huge 999999999999999\n"));
}

void ptx() {
  probe::start();
  CUmodule module = load(kPtx);
  CUdeviceptr pointer = 0;
  size_t bytes = 0;
  OK(CU(cuModuleGetGlobal_v2)(&pointer, &bytes, module, "table"));
  say("table_bytes", static_cast<long long>(bytes));
  OK(CU(cuModuleGetGlobal_v2)(&pointer, &bytes, module, "counter"));
  say("counter_bytes", static_cast<long long>(bytes));
  unsigned count = 0;
  OK(CU(cuModuleGetFunctionCount)(&count, module));
  say("functions", count);
  int local = 0;
  OK(CU(cuFuncGetAttribute)(&local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
                            function(module, "second")));
  say("second_local", local);
  size_t offset = 0;
  OK(CU(cuFuncGetParamInfo)(function(module, "first"), 1, &offset, &bytes));
  say("second_parameter_offset", static_cast<long long>(offset));
  say("second_parameter_bytes", static_cast<long long>(bytes));
  say("third_parameter", CU(cuFuncGetParamInfo)(function(module, "first"), 2, &offset, &bytes));
  CUdeviceptr p = 0;
  unsigned n = 0;
  void* arguments[] = {&p, &n};
  say("launch", launch(function(module, "first"), arguments));
}

void local_memory() {
  probe::start();
  CUmodule module =
      load("simgpu-module 1\nkernel plain\nkernel deep local=4096\nkernel deeper local=8192\n");
  say("plain", launch(function(module, "plain")));
  const long long before = probe::used();
  int sms = 0;
  OK(CU(cuDeviceGetAttribute)(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
  say("sms", sms);
  OK(launch(function(module, "deep")));
  const long long deep = probe::used();
  say("deep", deep - before);
  OK(launch(function(module, "deep")));
  say("again", probe::used() - deep);
  OK(launch(function(module, "deeper")));
  say("deeper", probe::used() - deep);
  const long long deepest = probe::used();
  OK(CU(cuModuleUnload)(module));
  OK(CU(cuCtxSynchronize)());
  say("kept_after_unload",
      probe::used() - deepest <= 0 && probe::used() >= deepest - static_cast<long long>(4 * kMiB));
}

void heap() {
  probe::start();
  CUmodule module = load("simgpu-module 1\nkernel plain\n");
  OK(CU(cuCtxSetLimit)(CU_LIMIT_MALLOC_HEAP_SIZE, 512 * kMiB));
  const long long before = probe::used();
  CUfunction f = function(module, "plain");
  say("before_launch", probe::used() - before);
  OK(launch(f));
  say("heap_taken", (probe::used() - before) / static_cast<long long>(kMiB) >= 512);
  const long long after = probe::used();
  OK(launch(f));
  say("again", probe::used() - after);
}

void lazy() {
  probe::start();
  CUmodule module = load("simgpu-module 1\nkernel one code=3145728\nkernel two code=3145728\n");
  const long long before = probe::used();
  CUfunction one = function(module, "one");
  CUfunction two = function(module, "two");
  OK(launch(one));
  const long long first = probe::used() - before;
  say("first_at_least_its_code", first >= 3145728);
  const long long middle = probe::used();
  OK(launch(one));
  say("one_again", probe::used() - middle);
  OK(launch(two));
  say("two", probe::used() - middle);
}

void eager() {
  probe::start();
  const long long before = probe::used();
  CUmodule module = load("simgpu-module 1\nkernel one code=3145728\n");
  say("at_load", probe::used() - before >= 3145728);
  CUmoduleLoadingMode mode = 0;
  OK(CU(cuModuleGetLoadingMode)(&mode));
  say("mode", mode);
  OK(CU(cuModuleUnload)(module));
  say("back", probe::used() - before);
}

void libraries() {
  probe::start();
  CUlibrary library = nullptr;
  OK(CU(cuLibraryLoadData)(&library, "simgpu-module 1\nkernel fill\nglobal g 4194304\n", nullptr,
                           nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel = nullptr;
  OK(CU(cuLibraryGetKernel)(&kernel, library, "fill"));
  CUfunction f = nullptr;
  OK(CU(cuKernelGetFunction)(&f, kernel));
  CUdeviceptr g = 0;
  size_t bytes = 0;
  OK(CU(cuLibraryGetGlobal)(&g, &bytes, library, "g"));
  say("g_bytes", static_cast<long long>(bytes));
  size_t count = bytes / 4;
  unsigned value = 0xabcd1234;
  void* arguments[] = {&g, &count, &value};
  OK(launch(f, arguments));
  unsigned last = 0;
  OK(CU(cuMemcpyDtoH_v2)(&last, g + bytes - 4, 4));
  say("by_function", last == value);
  value = 0x77;
  // A kernel handle may be passed in place of a function.
  OK(launch(reinterpret_cast<CUfunction>(kernel), arguments));
  OK(CU(cuMemcpyDtoH_v2)(&last, g, 4));
  say("by_kernel", last == value);
  CUlaunchConfig config = {};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  value = 0x99;
  OK(CU(cuLaunchKernelEx)(&config, f, arguments, nullptr));
  OK(CU(cuMemcpyDtoH_v2)(&last, g + 4, 4));
  say("by_ex", last == value);
  struct {
    CUdeviceptr to;
    size_t count;
    unsigned value;
  } packed = {g, count, 0x55};
  size_t packed_bytes = sizeof packed;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &packed_bytes, CU_LAUNCH_PARAM_END};
  OK(CU(cuLaunchKernel_ptsz)(f, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, extra));
  OK(CU(cuStreamSynchronize_ptsz)(nullptr));
  OK(CU(cuMemcpyDtoH_v2)(&last, g + 8, 4));
  say("by_extra", last == 0x55);
  int blocks = 0;
  OK(CU(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&blocks, f, 256, 0));
  say("blocks", blocks);
  say("too_many_threads",
      CU(cuLaunchKernel)(f, 1, 1, 1, 2048, 1, 1, 0, nullptr, arguments, nullptr));
  say("no_blocks", CU(cuLaunchKernel)(f, 0, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
  OK(CU(cuLibraryUnload)(library));
}

void linked() {
  probe::start();
  void* state = nullptr;
  OK(CU(cuLinkCreate_v2)(0, nullptr, nullptr, &state));
  char first[] = "simgpu-module 1\nkernel one\n";
  char second[] = "simgpu-module 1\nkernel two\n";
  OK(CU(cuLinkAddData_v2)(state, 1, first, sizeof first, "a", 0, nullptr, nullptr));
  OK(CU(cuLinkAddData_v2)(state, 1, second, sizeof second, "b", 0, nullptr, nullptr));
  void* image = nullptr;
  size_t bytes = 0;
  OK(CU(cuLinkComplete)(state, &image, &bytes));
  CUmodule module = load(static_cast<const char*>(image));
  OK(CU(cuLinkDestroy)(state));
  unsigned count = 0;
  OK(CU(cuModuleGetFunctionCount)(&count, module));
  say("functions", count);
  say("launch", launch(function(module, "two")));
}

// A kernel that writes to unmapped memory is a fault, and a fault stays.
void fault() {
  probe::start();
  CUmodule module = load("simgpu-module 1\nkernel fill\n");
  CUdeviceptr nowhere = 0x1000;
  size_t count = 4;
  unsigned value = 1;
  void* arguments[] = {&nowhere, &count, &value};
  const CUresult launched = launch(function(module, "fill"), arguments);
  const CUresult synced = CU(cuCtxSynchronize)();
  say("fault", launched != CUDA_SUCCESS ? launched : synced);
  CUdeviceptr pointer = 0;
  say("after", CU(cuMemAlloc_v2)(&pointer, 1 << 20));
}

}  // namespace

int main(int argc, char** argv) {
  const probe::Scenario scenarios[] = {
      {"globals", globals},     {"ptx", ptx},     {"local_memory", local_memory},
      {"heap", heap},           {"lazy", lazy},   {"eager", eager},
      {"libraries", libraries}, {"fault", fault}, {"linked", linked},
  };
  return probe::main_of(argc, argv, scenarios);
}
