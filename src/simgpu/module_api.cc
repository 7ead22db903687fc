// SPDX-License-Identifier: Apache-2.0
// The entry points of modules, libraries and their contents: loading from memory or a file, looking
// up functions, kernels and globals by name, and their attributes. Handles are checked against the
// lists of live objects before they are used.
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "abi/old_glibc.h"
#include "simgpu/capture.h"
#include "simgpu/module.h"

namespace simgpu {
namespace {

constexpr uint64_t kMaxFile = 256 << 20;

CUresult from_verdict(ModuleVerdict verdict) {
  switch (verdict) {
    case ModuleVerdict::kOk:
      return CUDA_SUCCESS;
    case ModuleVerdict::kNotAModule:
      return CUDA_ERROR_INVALID_IMAGE;
    case ModuleVerdict::kBadText:
      return CUDA_ERROR_INVALID_PTX;
    case ModuleVerdict::kNoMemory:
      return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_ERROR_UNKNOWN;
}

// The whole file with a zero byte behind it, or null. The caller frees it.
char* read_file(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  struct statx about;
  char* text = nullptr;
  if (mete::abi::look_at(fd, "", AT_EMPTY_PATH, STATX_SIZE, &about) == 0 &&
      about.stx_size <= kMaxFile) {
    const size_t size = about.stx_size;
    text = static_cast<char*>(malloc(size + 1));
    size_t got = 0;
    while (text != nullptr && got < size) {
      const ssize_t n = read(fd, text + got, size - got);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) break;
      got += static_cast<size_t>(n);
    }
    if (text != nullptr) text[got] = '\0';
  }
  close(fd);
  return text;
}

CUresult load_image(CUmodule* out, const void* image) {
  if (out == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  CUresult result = capture_forbids();
  if (result != CUDA_SUCCESS) return result;
  ModuleSpec* const spec = make<ModuleSpec>();
  if (spec == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  result = from_verdict(read_module(image, spec));
  Module* module = nullptr;
  if (result == CUDA_SUCCESS) result = load_module(current_context(), spec, nullptr, &module);
  if (result != CUDA_SUCCESS) {
    destroy(spec);
    return result;
  }
  *out = reinterpret_cast<CUmodule>(module);
  return CUDA_SUCCESS;
}

CUresult load_library(CUlibrary* out, const void* image) {
  if (out == nullptr || image == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Library* const library = make<Library>();
  if (library == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = from_verdict(read_module(image, &library->spec));
  for (size_t i = 0; i < library->spec.kernels.size() && result == CUDA_SUCCESS; i++) {
    Kernel* const kernel = make<Kernel>();
    if (kernel == nullptr || !library->kernels.push(kernel)) {
      destroy(kernel);
      result = CUDA_ERROR_OUT_OF_MEMORY;
      break;
    }
    kernel->library = library;
    kernel->index = i;
  }
  // An eager load, and one with globals, takes effect in the current context at once.
  Module* module = nullptr;
  if (result == CUDA_SUCCESS && current_context() != nullptr && loads_eagerly())
    result = module_of_library(library, &module);
  if (result != CUDA_SUCCESS) {
    for (Kernel* const kernel : library->kernels) destroy(kernel);
    destroy(library);
    return result;
  }
  *out = reinterpret_cast<CUlibrary>(library);
  return CUDA_SUCCESS;
}

Library* find_library(CUlibrary handle) {
  Library* const library = reinterpret_cast<Library*>(handle);
  return library != nullptr && library->magic == Library::kMagic ? library : nullptr;
}

Kernel* find_kernel(CUkernel handle) {
  Kernel* const kernel = reinterpret_cast<Kernel*>(handle);
  return kernel != nullptr && kernel->magic == Kernel::kMagic ? kernel : nullptr;
}

CUresult global_of(const Module* module, const char* name, CUdeviceptr* out, size_t* bytes) {
  for (size_t i = 0; i < module->global_addresses.size(); i++) {
    if (strcmp(module->spec->globals[i].name, name) != 0) continue;
    if (out != nullptr) *out = module->global_addresses[i];
    if (bytes != nullptr) *bytes = module->spec->globals[i].bytes;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult parameter_of(const KernelSpec& spec, size_t index, size_t* offset, size_t* bytes) {
  if (index >= spec.parameter_count) return CUDA_ERROR_INVALID_VALUE;
  if (offset != nullptr) *offset = spec.parameters[index].offset;
  if (bytes != nullptr) *bytes = spec.parameters[index].bytes;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

extern "C" {

CUresult cuModuleLoadData(CUmodule* out, const void* image) {
  SIM_ENTRY_CONTEXT(cuModuleLoadData);
  return load_image(out, image);
}
CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned int, CUjit_option*, void**) {
  SIM_ENTRY_CONTEXT(cuModuleLoadDataEx);
  return load_image(out, image);
}
CUresult cuModuleLoad(CUmodule* out, const char* path) {
  SIM_ENTRY_CONTEXT(cuModuleLoad);
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  char* const text = read_file(path);
  if (text == nullptr) return CUDA_ERROR_FILE_NOT_FOUND;
  const CUresult result = load_image(out, text);
  free(text);
  return result;
}

CUresult cuModuleUnload(CUmodule handle) {
  SIM_ENTRY_CONTEXT(cuModuleUnload);
  const CUresult synced = context_synchronize(current_context());
  if (synced != CUDA_SUCCESS) return synced;
  const Guard guard;
  Module* const module = find_module(handle);
  if (module == nullptr || module->library != nullptr) return CUDA_ERROR_INVALID_HANDLE;
  unload_module(module);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* out, CUmodule handle, const char* name) {
  SIM_ENTRY_CONTEXT(cuModuleGetFunction);
  if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const Module* const module = find_module(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (Function* const function : module->functions) {
    if (strcmp(function->spec->name, name) != 0) continue;
    *out = reinterpret_cast<CUfunction>(function);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuModuleGetFunctionCount(unsigned int* out, CUmodule handle) {
  SIM_ENTRY_CONTEXT(cuModuleGetFunctionCount);
  const Guard guard;
  const Module* const module = find_module(handle);
  if (out == nullptr || module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = static_cast<unsigned>(module->functions.size());
  return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* out, size_t* bytes, CUmodule handle, const char* name) {
  SIM_ENTRY_CONTEXT(cuModuleGetGlobal_v2);
  const Guard guard;
  const Module* const module = find_module(handle);
  if (module == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return global_of(module, name, out, bytes);
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* out) {
  SIM_ENTRY(cuModuleGetLoadingMode);
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = loads_eagerly() ? 1 : 2;
  return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary* out, const void* image, CUjit_option*, void**, unsigned int,
                           CUlibraryOption*, void**, unsigned int) {
  SIM_ENTRY(cuLibraryLoadData);
  return load_library(out, image);
}

CUresult cuLibraryUnload(CUlibrary handle) {
  SIM_ENTRY(cuLibraryUnload);
  if (current_context() != nullptr) {
    const CUresult synced = context_synchronize(current_context());
    if (synced != CUDA_SUCCESS) return synced;
  }
  const Guard guard;
  Library* const library = find_library(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (Context* context = driver.contexts; context != nullptr; context = context->next) {
    if (context->ended || context->modules == nullptr) continue;
    for (Module* module = code_of(context)->modules; module != nullptr;) {
      Module* const next = module->next;
      if (module->library == library) unload_module(module);
      module = next;
    }
  }
  for (Kernel* const kernel : library->kernels) {
    kernel->magic = 0;
    destroy(kernel);
  }
  library->magic = 0;
  destroy(library);
  return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel* out, CUlibrary handle, const char* name) {
  SIM_ENTRY(cuLibraryGetKernel);
  if (out == nullptr || name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  const Library* const library = find_library(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  for (Kernel* const kernel : library->kernels) {
    if (strcmp(library->spec.kernels[kernel->index].name, name) != 0) continue;
    *out = reinterpret_cast<CUkernel>(kernel);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_NOT_FOUND;
}

CUresult cuLibraryGetGlobal(CUdeviceptr* out, size_t* bytes, CUlibrary handle, const char* name) {
  SIM_ENTRY_CONTEXT(cuLibraryGetGlobal);
  const Guard guard;
  Library* const library = find_library(handle);
  if (library == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Module* module = nullptr;
  const CUresult result = module_of_library(library, &module);
  return result == CUDA_SUCCESS ? global_of(module, name, out, bytes) : result;
}

CUresult cuKernelGetFunction(CUfunction* out, CUkernel handle) {
  SIM_ENTRY_CONTEXT(cuKernelGetFunction);
  const Guard guard;
  if (out == nullptr || find_kernel(handle) == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  CUresult result = CUDA_SUCCESS;
  Function* const function = find_function(reinterpret_cast<CUfunction>(handle), &result);
  if (function != nullptr) *out = reinterpret_cast<CUfunction>(function);
  return result;
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t* offset, size_t* bytes) {
  SIM_ENTRY(cuFuncGetParamInfo);
  const Guard guard;
  CUresult result = CUDA_SUCCESS;
  const Function* const function = find_function(handle, &result);
  return function == nullptr ? result : parameter_of(*function->spec, index, offset, bytes);
}

}  // extern "C"
