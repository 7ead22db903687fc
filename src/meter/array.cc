// SPDX-License-Identifier: Apache-2.0
// Arrays and mipmaps. Their layout is known to the driver only, so the exact size is asked of a
// twin: an array with the same description and deferred mapping, which takes no memory and reports
// its requirements. The twin is destroyed, the size is reserved, and only then the driver makes the
// real array. A driver that lacks the query gets an estimate.
#include "meter/budget.h"
#include "meter/memory.h"
#include "meter/place.h"
#include "meter/real.h"
#include "meter/vmm.h"

namespace mete::meter {
namespace {

// Small arrays share slabs that the meter cannot see into. They are charged in steps of 64 KiB,
// larger arrays in steps of 2 MiB.
uint64_t array_units(uint64_t bytes) {
  return bytes > kSmallBytes ? abi::units_for(abi::round_to_granule(bytes)) : abi::units_for(bytes);
}

uint64_t channel_bytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    default:
      return 4;
  }
}

// The estimate for a driver without deferred mapping: rows without padding; an array with a single
// row counts eight times.
uint64_t guess(const CUDA_ARRAY3D_DESCRIPTOR& desc, unsigned levels) {
  const uint64_t height = desc.Height > 0 ? desc.Height : 8;
  const uint64_t depth = desc.Depth > 0 ? desc.Depth : 1;
  const uint64_t bytes =
      desc.Width * height * depth * desc.NumChannels * channel_bytes(desc.Format);
  return levels > 1 ? bytes * 3 / 2 : bytes;
}

// False for flags under which the driver takes no memory itself, because the program maps its own.
bool takes_memory(const CUDA_ARRAY3D_DESCRIPTOR& desc) {
  return (desc.Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) == 0;
}

uint64_t array_bytes(CUDA_ARRAY3D_DESCRIPTOR desc, CUdevice device) {
  desc.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
  CUarray twin = nullptr;
  if (real.cuArrayGetMemoryRequirements == nullptr ||
      real.cuArray3DCreate_v2(&twin, &desc) != CUDA_SUCCESS)
    return guess(desc, 1);
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs{};
  const bool told = real.cuArrayGetMemoryRequirements(&needs, twin, device) == CUDA_SUCCESS;
  real.cuArrayDestroy(twin);
  return told ? needs.size : guess(desc, 1);
}

uint64_t mipmap_bytes(CUDA_ARRAY3D_DESCRIPTOR desc, unsigned levels, CUdevice device) {
  desc.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
  CUmipmappedArray twin = nullptr;
  if (real.cuMipmappedArrayGetMemoryRequirements == nullptr ||
      real.cuMipmappedArrayCreate(&twin, &desc, levels) != CUDA_SUCCESS)
    return guess(desc, levels);
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs{};
  const bool told =
      real.cuMipmappedArrayGetMemoryRequirements(&needs, twin, device) == CUDA_SUCCESS;
  real.cuMipmappedArrayDestroy(twin);
  return told ? needs.size : guess(desc, levels);
}

void remember_array(void* array, const Place& place, uint64_t units) {
  Locked locked(process.lock);
  process.arrays.put(reinterpret_cast<uint64_t>(array),
                     Block{units, place.card, Block::kOwn, place.context_id}.pack());
}

// An array that costs nothing is listed too: its bindings end with it.
template <class Call>
CUresult create_empty(void** out, const Place& place, Call call) {
  const CUresult result = call();
  if (result == CUDA_SUCCESS && place.card != kNoCard) remember_array(*out, place, 0);
  return result;
}

template <class Bytes, class Call>
CUresult create(void** out, const CUDA_ARRAY3D_DESCRIPTOR* desc, Bytes bytes_of, Call call) {
  Place place;
  if (out == nullptr || desc == nullptr || !find_place(&place)) return call();
  if (!takes_memory(*desc)) return create_empty(out, place, call);
  if (place.card == kNoCard) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t units = array_units(bytes_of(*desc, place.device));
  if (!take(place.card, units)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = call();
  for (int tries = 0; result == CUDA_ERROR_OUT_OF_MEMORY && worth_another_try(&tries);)
    result = call();
  if (result == CUDA_SUCCESS) remember_array(*out, place, units);
  settle(place.card, units, result == CUDA_SUCCESS ? units : 0);
  return result;
}

template <class Call>
CUresult destroy(void* handle, Call call) {
  TableValue value;
  bool known = false;
  const auto key = reinterpret_cast<uint64_t>(handle);
  if (process.attached.load() == 1) {
    Locked locked(process.lock);
    known = process.arrays.remove(key, &value);
  }
  const CUresult result = call();
  if (!known) return result;
  if (result == CUDA_SUCCESS) {
    release(Block::unpack(value).card, Block::unpack(value).units);
    unbind_array(key);
  } else {
    Locked locked(process.lock);
    process.arrays.put(key, value);
  }
  return result;
}

CUDA_ARRAY3D_DESCRIPTOR widen(size_t width, size_t height, size_t depth, CUarray_format format,
                              unsigned channels, unsigned flags) {
  CUDA_ARRAY3D_DESCRIPTOR desc{};
  desc.Width = width;
  desc.Height = height;
  desc.Depth = depth;
  desc.Format = format;
  desc.NumChannels = channels;
  desc.Flags = flags;
  return desc;
}

template <class Call>
CUresult create_array(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* desc, Call call) {
  return create(reinterpret_cast<void**>(out), desc, array_bytes, call);
}

}  // namespace

void forget_arrays_of(uint32_t context_id) {
  TakenBlock gone[kTakeBatch];
  for (int count = kTakeBatch; count == kTakeBatch;) {
    {
      Locked locked(process.lock);
      count = take_blocks_of(process.arrays, context_id, gone);
    }
    for (int i = 0; i < count; ++i) {
      release(gone[i].block.card, gone[i].block.units);
      unbind_array(gone[i].key);
    }
  }
}

}  // namespace mete::meter

using namespace mete::meter;

extern "C" {

CUresult hook_cuArrayCreate(CUarray* out, const CUDA_ARRAY_DESCRIPTOR_v1* desc) {
  if (desc == nullptr) return real.cuArrayCreate(out, desc);
  const auto wide = widen(desc->Width, desc->Height, 0, desc->Format, desc->NumChannels, 0);
  return create_array(out, &wide, [&] { return real.cuArrayCreate(out, desc); });
}
CUresult hook_cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* desc) {
  if (desc == nullptr) return real.cuArrayCreate_v2(out, desc);
  const auto wide = widen(desc->Width, desc->Height, 0, desc->Format, desc->NumChannels, 0);
  return create_array(out, &wide, [&] { return real.cuArrayCreate_v2(out, desc); });
}
CUresult hook_cuArray3DCreate(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR_v1* desc) {
  if (desc == nullptr) return real.cuArray3DCreate(out, desc);
  const auto wide =
      widen(desc->Width, desc->Height, desc->Depth, desc->Format, desc->NumChannels, desc->Flags);
  return create_array(out, &wide, [&] { return real.cuArray3DCreate(out, desc); });
}
CUresult hook_cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* desc) {
  return create_array(out, desc, [&] { return real.cuArray3DCreate_v2(out, desc); });
}
CUresult hook_cuArrayDestroy(CUarray array) {
  return destroy(array, [&] { return real.cuArrayDestroy(array); });
}

CUresult hook_cuMipmappedArrayCreate(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR* desc,
                                     unsigned int levels) {
  return create(
      reinterpret_cast<void**>(out), desc,
      [&](const CUDA_ARRAY3D_DESCRIPTOR& d, CUdevice device) {
        return mipmap_bytes(d, levels, device);
      },
      [&] { return real.cuMipmappedArrayCreate(out, desc, levels); });
}
CUresult hook_cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return destroy(array, [&] { return real.cuMipmappedArrayDestroy(array); });
}
}
