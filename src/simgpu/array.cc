// SPDX-License-Identifier: Apache-2.0
// Arrays and mipmapped arrays. Their size is that of the card's block-linear layout, found by
// asking a real card for several hundred shapes (all agree):
//   a row is rounded up to 64 bytes, rows to blocks of 8: for 2D the smallest 8, 16, ... 128 rows
//   that hold the height, whole blocks of 128 above; for 3D always 8 rows, and the depth rounded up
//   to blocks of the smallest 1, 2, ... 16 slices that hold it; layers lie one behind another; the
//   levels of a mipmap likewise, each half as large. The sum is rounded up to 64 KiB.
// Example: 1000 x 1000 float4 is 16,000 x 1,024 = 16,384,000 bytes. Contents are kept row by row.
#include <stdlib.h>
#include <string.h>

#include "simgpu/bound.h"
#include "simgpu/slab.h"
#include "simgpu/state.h"

namespace simgpu {
namespace {

constexpr uint64_t kArrayMagic = 0x7961727261746d73ull;
constexpr size_t kArrayAlign = 64 << 10;

size_t block_of(size_t n, size_t smallest, size_t largest) {
  size_t block = smallest;
  while (block < n && block < largest) block *= 2;
  return block;
}

size_t round_to(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

struct Shape {
  size_t width_bytes, height, depth;
};

size_t level_bytes(const Shape& s, bool volume) {
  const size_t row = round_to(s.width_bytes, 64);
  if (!volume) return row * round_to(s.height, block_of(s.height, 8, 128));
  return row * round_to(s.height, 8) * round_to(s.depth, block_of(s.depth, 1, 16));
}

size_t half(size_t n, unsigned level) { return (n >> level) > 0 ? n >> level : 1; }

bool layered(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  return (d.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
}

size_t array_size(const CUDA_ARRAY3D_DESCRIPTOR& d, unsigned levels) {
  const size_t element = element_bytes(d);
  const bool volume = d.Depth > 0 && !layered(d);
  size_t sum = 0;
  for (unsigned level = 0; level < levels; ++level) {
    const Shape shape{half(d.Width, level) * element, d.Height == 0 ? 1 : half(d.Height, level),
                      volume ? half(d.Depth, level) : 1};
    sum += level_bytes(shape, volume);
  }
  if (layered(d)) sum *= d.Depth;
  return round_to(sum, kArrayAlign);
}

unsigned most_levels(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  size_t longest = d.Width > d.Height ? d.Width : d.Height;
  if (!layered(d) && d.Depth > longest) longest = d.Depth;
  unsigned levels = 1;
  while ((longest >>= 1) != 0) ++levels;
  return levels;
}

// The limits of attributes 21 to 29.
CUresult check_shape(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  if (element_bytes(d) == 0 || d.Width == 0) return CUDA_ERROR_INVALID_VALUE;
  if (d.NumChannels != 1 && d.NumChannels != 2 && d.NumChannels != 4) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (layered(d)) {
    if (d.Depth == 0 || d.Depth > 2048 || d.Width > 32768 || d.Height > 32768) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if ((d.Flags & CUDA_ARRAY3D_CUBEMAP) != 0 && (d.Width != d.Height || d.Depth % 6 != 0)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  }
  if (d.Depth > 0) {
    const bool fits = d.Width <= 16384 && d.Height <= 16384 && d.Depth <= 16384 && d.Height > 0;
    return fits ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  if (d.Height > 0) {
    return d.Width <= 131072 && d.Height <= 65536 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
  return d.Width <= 131072 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// The bytes behind an array are an ordinary allocation; an array in a slab starts at a multiple of
// 64 KiB.
CUresult take_memory(Context* context, size_t bytes, CUdeviceptr* p) {
  if (bytes > kSmallMax) return memory_take(context, bytes, p);
  return slab_take(context, bytes, kArrayAlign / kCell, p);
}

CUresult make_array(const CUDA_ARRAY3D_DESCRIPTOR& shape, unsigned levels, Array** made) {
  const CUresult wrong = check_shape(shape);
  if (wrong != CUDA_SUCCESS) return wrong;
  Context* context = current_context();
  Array* array = static_cast<Array*>(calloc(1, sizeof(Array)));
  if (array == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  array->magic = kArrayMagic;
  array->shape = shape;
  array->levels = levels < most_levels(shape) ? levels : most_levels(shape);
  array->deferred = (shape.Flags & (CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_SPARSE)) != 0;
  array->size = array_size(shape, array->levels);
  array->context = context;
  if (!array->deferred) {
    const CUresult result = take_memory(context, array->size, &array->block);
    if (result != CUDA_SUCCESS) {
      free(array);
      return result;
    }
  }
  array->next = context->arrays;
  context->arrays = array;
  *made = array;
  return CUDA_SUCCESS;
}

void free_array(Array* array) {
  for (Array** link = &array->context->arrays; *link != nullptr; link = &(*link)->next) {
    if (*link != array) continue;
    *link = array->next;
    break;
  }
  if (array->deferred) sparse_end(array);
  if (array->level_arrays != nullptr) {
    for (unsigned i = 0; i < array->levels; ++i) free(array->level_arrays[i]);
    free(array->level_arrays);
  }
  if (array->block != 0) (void)memory_give(array->block);
  array->magic = 0;
  free(array);
}

Array* find_in_contexts(const void* handle, bool levels_too) {
  for (Context* context = driver.contexts; context != nullptr; context = context->next) {
    for (Array* array = context->arrays; array != nullptr; array = array->next) {
      if (array == handle) return array;
      if (!levels_too || array->level_arrays == nullptr) continue;
      for (unsigned i = 0; i < array->levels; ++i) {
        if (array->level_arrays[i] == handle) return array->level_arrays[i];
      }
    }
  }
  return nullptr;
}

CUDA_ARRAY3D_DESCRIPTOR widen(const CUDA_ARRAY_DESCRIPTOR& d) {
  return {d.Width, d.Height, 0, d.Format, d.NumChannels, 0};
}

CUresult level_of(Array* mipmap, unsigned level, Array** out) {
  if (level >= mipmap->levels) return CUDA_ERROR_INVALID_VALUE;
  if (mipmap->level_arrays == nullptr) {
    mipmap->level_arrays = static_cast<Array**>(calloc(mipmap->levels, sizeof(Array*)));
    if (mipmap->level_arrays == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Array*& made = mipmap->level_arrays[level];
  if (made == nullptr) {
    made = static_cast<Array*>(calloc(1, sizeof(Array)));
    if (made == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    *made = *mipmap;
    made->level_arrays = nullptr;
    made->level_of_mipmap = true;
    made->levels = 1;
    made->shape.Width = half(mipmap->shape.Width, level);
    if (mipmap->shape.Height > 0) made->shape.Height = half(mipmap->shape.Height, level);
    if (mipmap->shape.Depth > 0 && !layered(mipmap->shape)) {
      made->shape.Depth = half(mipmap->shape.Depth, level);
    }
    for (unsigned i = 0; i < level; ++i) {
      CUDA_ARRAY3D_DESCRIPTOR above = mipmap->shape;
      made->level_offset += half(above.Width, i) * element_bytes(above) *
                            (above.Height == 0 ? 1 : half(above.Height, i)) *
                            (above.Depth == 0 ? 1
                             : layered(above) ? above.Depth
                                              : half(above.Depth, i));
    }
  }
  *out = made;
  return CUDA_SUCCESS;
}

}  // namespace

size_t element_bytes(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  switch (shape.Format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return shape.NumChannels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2 * static_cast<size_t>(shape.NumChannels);
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4 * static_cast<size_t>(shape.NumChannels);
    default:
      return 0;
  }
}

Array* find_array(CUarray handle) { return find_in_contexts(handle, true); }

void arrays_end(Context* context) {
  while (context->arrays != nullptr) free_array(context->arrays);
}

}  // namespace simgpu

using namespace simgpu;

extern "C" CUresult cuArray3DCreate_v2(CUarray* handle, const CUDA_ARRAY3D_DESCRIPTOR* shape) {
  SIM_ENTRY_CONTEXT(cuArray3DCreate_v2);
  if (handle == nullptr || shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Array* made = nullptr;
  const CUresult result = make_array(*shape, 1, &made);
  if (result == CUDA_SUCCESS) *handle = reinterpret_cast<CUarray>(made);
  return result;
}

extern "C" CUresult cuArrayCreate_v2(CUarray* handle, const CUDA_ARRAY_DESCRIPTOR* shape) {
  SIM_ENTRY_CONTEXT(cuArrayCreate_v2);
  if (handle == nullptr || shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Array* made = nullptr;
  const CUresult result = make_array(widen(*shape), 1, &made);
  if (result == CUDA_SUCCESS) *handle = reinterpret_cast<CUarray>(made);
  return result;
}

extern "C" CUresult cuArrayDestroy(CUarray handle) {
  SIM_ENTRY_CONTEXT(cuArrayDestroy);
  const CUresult waited = context_synchronize(current_context());
  if (waited != CUDA_SUCCESS) return waited;
  const Guard guard;
  Array* array = find_in_contexts(handle, false);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  free_array(array);
  return CUDA_SUCCESS;
}

extern "C" CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* shape, CUarray handle) {
  SIM_ENTRY_CONTEXT(cuArray3DGetDescriptor_v2);
  const Guard guard;
  const Array* array = find_array(handle);
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *shape = array->shape;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* shape, CUarray handle) {
  SIM_ENTRY_CONTEXT(cuArrayGetDescriptor_v2);
  const Guard guard;
  const Array* array = find_array(handle);
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *shape = {array->shape.Width, array->shape.Height, array->shape.Format, array->shape.NumChannels};
  return CUDA_SUCCESS;
}

namespace {

// Only for arrays with deferred mapping, as in the real driver.
CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, const Array* array, CUdevice device) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (!device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  if (!array->deferred) return CUDA_ERROR_INVALID_VALUE;
  *out = {};
  out->size = array->size;
  out->alignment = 64 << 10;
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out,
                                                 CUarray handle, CUdevice device) {
  SIM_ENTRY_CONTEXT(cuArrayGetMemoryRequirements);
  const Guard guard;
  return requirements(out, find_array(handle), device);
}

extern "C" CUresult cuMipmappedArrayCreate(CUmipmappedArray* handle,
                                           const CUDA_ARRAY3D_DESCRIPTOR* shape,
                                           unsigned int levels) {
  SIM_ENTRY_CONTEXT(cuMipmappedArrayCreate);
  if (handle == nullptr || shape == nullptr || levels == 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Array* made = nullptr;
  const CUresult result = make_array(*shape, levels, &made);
  if (result == CUDA_SUCCESS) *handle = reinterpret_cast<CUmipmappedArray>(made);
  return result;
}

extern "C" CUresult cuMipmappedArrayDestroy(CUmipmappedArray handle) {
  SIM_ENTRY_CONTEXT(cuMipmappedArrayDestroy);
  return cuArrayDestroy(reinterpret_cast<CUarray>(handle));
}

extern "C" CUresult cuMipmappedArrayGetLevel(CUarray* level, CUmipmappedArray handle,
                                             unsigned int number) {
  SIM_ENTRY_CONTEXT(cuMipmappedArrayGetLevel);
  if (level == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  Array* mipmap = find_in_contexts(handle, false);
  if (mipmap == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  Array* made = nullptr;
  const CUresult result = level_of(mipmap, number, &made);
  if (result == CUDA_SUCCESS) *level = reinterpret_cast<CUarray>(made);
  return result;
}

extern "C" CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out,
                                                          CUmipmappedArray handle,
                                                          CUdevice device) {
  SIM_ENTRY_CONTEXT(cuMipmappedArrayGetMemoryRequirements);
  const Guard guard;
  return requirements(out, find_in_contexts(handle, false), device);
}
