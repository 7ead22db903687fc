// SPDX-License-Identifier: Apache-2.0
// What kernels are given beside pointers: texture and surface objects, tensor maps. No simulated
// kernel reads them, so they are kept and told, nothing more; none takes memory. Descriptors are
// bytes to us (sizes as in CUDA 13.0).
#include <cstring>

#include "simgpu/driver.h"
#include "simgpu/stream_list.h"

namespace simgpu {
namespace {

constexpr size_t kResource = 144;
constexpr size_t kTexture = 104;
constexpr size_t kView = 112;
constexpr size_t kTensorMap = 128;

struct TextureObject {
  static constexpr uint32_t kMagic = 0x54455854;
  uint32_t magic = kMagic;
  bool has_view = false;
  unsigned char resource[kResource] = {};
  unsigned char texture[kTexture] = {};
  unsigned char view[kView] = {};
};

TextureObject* find_object(unsigned long long handle) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): such handles are integers in the interface
  TextureObject* const object = reinterpret_cast<TextureObject*>(handle);
  return object != nullptr && object->magic == TextureObject::kMagic ? object : nullptr;
}

CUresult create(unsigned long long* out, const void* resource, const void* texture,
                const void* view) {
  if (out == nullptr || resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  TextureObject* const object = make<TextureObject>();
  if (object == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  memcpy(object->resource, resource, kResource);
  if (texture != nullptr) memcpy(object->texture, texture, kTexture);
  object->has_view = view != nullptr;
  if (view != nullptr) memcpy(object->view, view, kView);
  *out = reinterpret_cast<unsigned long long>(object);
  return CUDA_SUCCESS;
}

CUresult drop(unsigned long long handle) {
  TextureObject* const object = find_object(handle);
  if (object == nullptr) return CUDA_ERROR_INVALID_VALUE;
  object->magic = 0;
  destroy(object);
  return CUDA_SUCCESS;
}

template <size_t N>
CUresult tell(void* out, unsigned long long handle, unsigned char (TextureObject::*what)[N]) {
  const TextureObject* const object = find_object(handle);
  if (out == nullptr || object == nullptr) return CUDA_ERROR_INVALID_VALUE;
  memcpy(out, object->*what, N);
  return CUDA_SUCCESS;
}

CUresult encode(void* map, unsigned rank, unsigned lowest_rank, const void* address) {
  if (map == nullptr || address == nullptr || rank < lowest_rank || rank > 5)
    return CUDA_ERROR_INVALID_VALUE;
  if (reinterpret_cast<uintptr_t>(address) % 16 != 0) return CUDA_ERROR_INVALID_VALUE;
  memset(map, 0, kTensorMap);
  memcpy(map, &address, sizeof address);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

extern "C" {

CUresult cuTexObjectCreate(unsigned long long* out, const void* resource, const void* texture,
                           const void* view) {
  SIM_ENTRY_CONTEXT(cuTexObjectCreate);
  return texture == nullptr ? CUDA_ERROR_INVALID_VALUE : create(out, resource, texture, view);
}
CUresult cuTexObjectDestroy(unsigned long long object) {
  SIM_ENTRY(cuTexObjectDestroy);
  return drop(object);
}
CUresult cuTexObjectGetResourceDesc(void* out, unsigned long long object) {
  SIM_ENTRY(cuTexObjectGetResourceDesc);
  return tell(out, object, &TextureObject::resource);
}
CUresult cuTexObjectGetTextureDesc(void* out, unsigned long long object) {
  SIM_ENTRY(cuTexObjectGetTextureDesc);
  return tell(out, object, &TextureObject::texture);
}
CUresult cuTexObjectGetResourceViewDesc(void* out, unsigned long long handle) {
  SIM_ENTRY(cuTexObjectGetResourceViewDesc);
  const TextureObject* const object = find_object(handle);
  if (object != nullptr && !object->has_view) return CUDA_ERROR_INVALID_VALUE;
  return tell(out, handle, &TextureObject::view);
}
CUresult cuSurfObjectCreate(unsigned long long* out, const void* resource) {
  SIM_ENTRY_CONTEXT(cuSurfObjectCreate);
  return create(out, resource, nullptr, nullptr);
}
CUresult cuSurfObjectDestroy(unsigned long long object) {
  SIM_ENTRY(cuSurfObjectDestroy);
  return drop(object);
}
CUresult cuSurfObjectGetResourceDesc(void* out, unsigned long long object) {
  SIM_ENTRY(cuSurfObjectGetResourceDesc);
  return tell(out, object, &TextureObject::resource);
}

// Of the many parameters only map, rank and address are looked at; the others follow in registers
// and on the stack, where a C caller put them and nobody reads them.
CUresult cuTensorMapEncodeTiled(void* map, int, unsigned int rank, void* address) {
  SIM_ENTRY(cuTensorMapEncodeTiled);
  return encode(map, rank, 1, address);
}
CUresult cuTensorMapEncodeIm2col(void* map, int, unsigned int rank, void* address) {
  SIM_ENTRY(cuTensorMapEncodeIm2col);
  return encode(map, rank, 3, address);
}
CUresult cuTensorMapEncodeIm2colWide(void* map, int, unsigned int rank, void* address) {
  SIM_ENTRY(cuTensorMapEncodeIm2colWide);
  return encode(map, rank, 3, address);
}
CUresult cuTensorMapReplaceAddress(void* map, void* address) {
  SIM_ENTRY(cuTensorMapReplaceAddress);
  if (map == nullptr || address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  memcpy(map, &address, sizeof address);
  return CUDA_SUCCESS;
}

CUresult cuProfilerStart(void) {
  SIM_ENTRY_CONTEXT(cuProfilerStart);
  return CUDA_SUCCESS;
}
CUresult cuProfilerStop(void) {
  SIM_ENTRY_CONTEXT(cuProfilerStop);
  return CUDA_SUCCESS;
}

}  // extern "C"
