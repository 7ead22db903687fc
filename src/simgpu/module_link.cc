// SPDX-License-Identifier: Apache-2.0
// The linker's entry points, enough for programs that assemble a module before they load it: texts
// are concatenated, and the result is an image that cuModuleLoadData accepts.
#include <elf.h>

#include <cstring>

#include "simgpu/module.h"

namespace simgpu {
namespace {

constexpr char kHeader[] = "simgpu-module 1\n";

struct Linker {
  static constexpr uint32_t kMagic = 0x4c494e4b;
  uint32_t magic = kMagic;
  List<char> image;
};

Linker* find_linker(void* state) {
  Linker* const linker = static_cast<Linker*>(state);
  return linker != nullptr && linker->magic == Linker::kMagic ? linker : nullptr;
}

CUresult create(void** out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = make<Linker>();
  return *out == nullptr ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult add(void* state, const char* data, size_t size) {
  Linker* const linker = find_linker(state);
  if (linker == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (data == nullptr || size == 0) return CUDA_ERROR_INVALID_VALUE;
  const bool binary = size >= SELFMAG && memcmp(data, ELFMAG, SELFMAG) == 0;
  if (!binary) size = strnlen(data, size);
  // The header occurs once, at the top.
  const size_t header = sizeof kHeader - 1;
  if (!linker->image.empty() && size >= header && memcmp(data, kHeader, header) == 0) {
    data += header;
    size -= header;
  }
  for (size_t i = 0; i < size; i++)
    if (!linker->image.push(data[i])) return CUDA_ERROR_OUT_OF_MEMORY;
  return binary || linker->image.push('\n') ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

#define ADD_DATA_PARAMETERS \
  void *state, int, void *data, size_t size, const char *, unsigned int, CUjit_option *, void **

extern "C" {

CUresult cuLinkCreate(unsigned int, CUjit_option*, void**, void** out) {
  SIM_ENTRY_CONTEXT(cuLinkCreate);
  return create(out);
}
CUresult cuLinkCreate_v2(unsigned int, CUjit_option*, void**, void** out) {
  SIM_ENTRY_CONTEXT(cuLinkCreate_v2);
  return create(out);
}
CUresult cuLinkAddData(ADD_DATA_PARAMETERS) {
  SIM_ENTRY_CONTEXT(cuLinkAddData);
  return add(state, static_cast<const char*>(data), size);
}
CUresult cuLinkAddData_v2(ADD_DATA_PARAMETERS) {
  SIM_ENTRY_CONTEXT(cuLinkAddData_v2);
  return add(state, static_cast<const char*>(data), size);
}
CUresult cuLinkComplete(void* state, void** image, size_t* bytes) {
  SIM_ENTRY_CONTEXT(cuLinkComplete);
  Linker* const linker = find_linker(state);
  if (linker == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (image == nullptr || linker->image.empty()) return CUDA_ERROR_INVALID_VALUE;
  if (!linker->image.push('\0')) return CUDA_ERROR_OUT_OF_MEMORY;
  *image = linker->image.begin();
  if (bytes != nullptr) *bytes = linker->image.size();
  return CUDA_SUCCESS;
}
CUresult cuLinkDestroy(void* state) {
  SIM_ENTRY_CONTEXT(cuLinkDestroy);
  Linker* const linker = find_linker(state);
  if (linker == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  linker->magic = 0;
  destroy(linker);
  return CUDA_SUCCESS;
}

}  // extern "C"
