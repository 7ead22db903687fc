// SPDX-License-Identifier: Apache-2.0
// Where managed memory lives: prefetch moves it to a card (if there is room) or back; advice is
// stored for queries, and changes nothing else. Both are kept for the whole allocation, whatever
// part of it was named. Discarded memory keeps its contents.
#include "simgpu/state.h"

namespace simgpu {
namespace {

struct Prefetch {
  CUdeviceptr p;
  int device;  // -1: the host
};

CUresult run_prefetch(void* arguments) {
  const Prefetch* what = static_cast<Prefetch*>(arguments);
  const Guard guard;
  HostRange* range = host_find(static_cast<uintptr_t>(what->p));
  if (range != nullptr) managed_touch(range, what->device);
  return CUDA_SUCCESS;
}

// Null unless all of it is managed memory. Guard held.
HostRange* find_managed(CUdeviceptr p, size_t bytes) {
  HostRange* range = host_find(static_cast<uintptr_t>(p));
  const bool good = range != nullptr && range->kind == HostKind::kManaged && bytes > 0 &&
                    bytes <= range->base + range->bytes - p;
  return good ? range : nullptr;
}

// The places of HostRange.
int place_of(int device) { return device == CU_DEVICE_CPU ? 1 : 2 + device; }
int device_at(int place) {
  return place == 0 ? CU_DEVICE_INVALID : place == 1 ? CU_DEVICE_CPU : place - 2;
}
CUmemLocation location_at(int place) {
  CUmemLocation location = {};
  location.type = place == 0   ? CU_MEM_LOCATION_TYPE_INVALID
                  : place == 1 ? CU_MEM_LOCATION_TYPE_HOST
                               : CU_MEM_LOCATION_TYPE_DEVICE;
  location.id = place > 1 ? place - 2 : 0;
  return location;
}

CUresult prefetch(CUdeviceptr p, size_t bytes, int device, CUstream stream, bool per_thread) {
  {
    const Guard guard;
    HostRange* range = find_managed(p, bytes);
    if (range == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (device != CU_DEVICE_CPU && !device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
    range->prefetched = place_of(device);
  }
  const Prefetch what{p, device};
  return stream_submit(stream, per_thread, run_prefetch, &what, sizeof what);
}

int device_of_location(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : CU_DEVICE_CPU;
}

CUresult advise(CUdeviceptr p, size_t bytes, CUmem_advise advice, int device) {
  const Guard guard;
  HostRange* range = find_managed(p, bytes);
  if (range == nullptr || advice < 1 || advice > 6) return CUDA_ERROR_INVALID_VALUE;
  const bool names_device = advice == 3 || advice >= 5;  // the others ignore it
  if (names_device && device != CU_DEVICE_CPU && !device_ok(device)) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  switch (advice) {
    case 1:
    case 2:
      range->read_mostly = advice == 1;
      break;
    case 3:
      range->preferred = place_of(device);
      break;
    case 4:
      range->preferred = 0;
      break;
    case 5:
      range->accessed_by |= 1ull << place_of(device);
      break;
    default:
      range->accessed_by &= ~(1ull << place_of(device));
  }
  return CUDA_SUCCESS;
}

CUresult attribute(void* data, size_t size, CUmem_range_attribute which, CUdeviceptr p,
                   size_t bytes) {
  const Guard guard;
  const HostRange* range = find_managed(p, bytes);
  if (range == nullptr || data == nullptr || size == 0 || size % sizeof(int) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  int* out = static_cast<int*>(data);
  if (which == 3) {  // accessed by: as many as there is room for, then none
    size_t filled = 0;
    for (int place = 1; place < 64 && filled < size / sizeof(int); ++place) {
      if ((range->accessed_by >> place & 1) != 0) out[filled++] = device_at(place);
    }
    while (filled < size / sizeof(int)) out[filled++] = CU_DEVICE_INVALID;
    return CUDA_SUCCESS;
  }
  if (size != sizeof(int)) return CUDA_ERROR_INVALID_VALUE;
  switch (which) {
    case 1:
      *out = range->read_mostly ? 1 : 0;
      return CUDA_SUCCESS;
    case 2:
      *out = device_at(range->preferred);
      return CUDA_SUCCESS;
    case 4:
      *out = device_at(range->prefetched);
      return CUDA_SUCCESS;
    case 5:
      *out = location_at(range->preferred).type;
      return CUDA_SUCCESS;
    case 6:
      *out = location_at(range->preferred).id;
      return CUDA_SUCCESS;
    case 7:
      *out = location_at(range->prefetched).type;
      return CUDA_SUCCESS;
    case 8:
      *out = location_at(range->prefetched).id;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

struct Batch {
  const CUdeviceptr* p;
  const size_t* bytes;
  size_t count;
  const CUmemLocation* locations;  // null: nothing is moved
  const size_t* starts;            // the first block that each location is for
  size_t places;
};

CUresult check(const Batch& b) {
  if (b.p == nullptr || b.bytes == nullptr || b.count == 0) return CUDA_ERROR_INVALID_VALUE;
  const Guard guard;
  for (size_t i = 0; i < b.count; ++i) {
    if (find_managed(b.p[i], b.bytes[i]) == nullptr) return CUDA_ERROR_INVALID_VALUE;
  }
  if (b.locations == nullptr) return CUDA_SUCCESS;
  if (b.starts == nullptr || b.places == 0 || b.places > b.count || b.starts[0] != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < b.places; ++i) {
    if (i > 0 && (b.starts[i] <= b.starts[i - 1] || b.starts[i] >= b.count)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const int device = device_of_location(b.locations[i]);
    if (device != CU_DEVICE_CPU && !device_ok(device)) return CUDA_ERROR_INVALID_DEVICE;
  }
  return CUDA_SUCCESS;
}

CUresult prefetch_all(const Batch& b, unsigned long long flags, CUstream stream, bool per_thread) {
  if (flags != 0 || b.locations == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = check(b);
  size_t place = 0;
  for (size_t i = 0; result == CUDA_SUCCESS && i < b.count; ++i) {
    if (place + 1 < b.places && b.starts[place + 1] == i) ++place;
    result =
        prefetch(b.p[i], b.bytes[i], device_of_location(b.locations[place]), stream, per_thread);
  }
  return result;
}

CUresult run_nothing(void*) { return CUDA_SUCCESS; }

CUresult discard_all(const Batch& b, unsigned long long flags, CUstream stream, bool per_thread) {
  const CUresult wrong = flags != 0 ? CUDA_ERROR_INVALID_VALUE : check(b);
  if (wrong != CUDA_SUCCESS) return wrong;
  return stream_submit(stream, per_thread, run_nothing, "", 1);
}

}  // namespace
}  // namespace simgpu

using namespace simgpu;

#define SIM_PREFETCH(NAME, THREAD)                                                          \
  extern "C" CUresult NAME(CUdeviceptr p, size_t bytes, CUdevice device, CUstream stream) { \
    SIM_ENTRY_CONTEXT(NAME);                                                                \
    return prefetch(p, bytes, device, stream, THREAD);                                      \
  }
#define SIM_PREFETCH_V2(NAME, THREAD)                                           \
  extern "C" CUresult NAME(CUdeviceptr p, size_t bytes, CUmemLocation location, \
                           unsigned int flags, CUstream stream) {               \
    SIM_ENTRY_CONTEXT(NAME);                                                    \
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;                            \
    return prefetch(p, bytes, device_of_location(location), stream, THREAD);    \
  }
SIM_PREFETCH(cuMemPrefetchAsync, false)
SIM_PREFETCH(cuMemPrefetchAsync_ptsz, true)
SIM_PREFETCH_V2(cuMemPrefetchAsync_v2, false)
SIM_PREFETCH_V2(cuMemPrefetchAsync_v2_ptsz, true)

// Discarded and then prefetched memory may keep its contents: one implementation for both.
#define SIM_PREFETCH_BATCH(NAME, THREAD)                                                      \
  extern "C" CUresult NAME(CUdeviceptr* p, size_t* bytes, size_t count, CUmemLocation* where, \
                           size_t* starts, size_t places, unsigned long long flags,           \
                           CUstream stream) {                                                 \
    SIM_ENTRY_CONTEXT(NAME);                                                                  \
    return prefetch_all({p, bytes, count, where, starts, places}, flags, stream, THREAD);     \
  }
SIM_PREFETCH_BATCH(cuMemPrefetchBatchAsync, false)
SIM_PREFETCH_BATCH(cuMemPrefetchBatchAsync_ptsz, true)
SIM_PREFETCH_BATCH(cuMemDiscardAndPrefetchBatchAsync, false)
SIM_PREFETCH_BATCH(cuMemDiscardAndPrefetchBatchAsync_ptsz, true)

#define SIM_DISCARD_BATCH(NAME, THREAD)                                                           \
  extern "C" CUresult NAME(CUdeviceptr* p, size_t* bytes, size_t count, unsigned long long flags, \
                           CUstream stream) {                                                     \
    SIM_ENTRY_CONTEXT(NAME);                                                                      \
    return discard_all({p, bytes, count, nullptr, nullptr, 0}, flags, stream, THREAD);            \
  }
SIM_DISCARD_BATCH(cuMemDiscardBatchAsync, false)
SIM_DISCARD_BATCH(cuMemDiscardBatchAsync_ptsz, true)

extern "C" CUresult cuMemAdvise(CUdeviceptr p, size_t bytes, CUmem_advise advice, CUdevice device) {
  SIM_ENTRY_CONTEXT(cuMemAdvise);
  return advise(p, bytes, advice, device);
}

extern "C" CUresult cuMemAdvise_v2(CUdeviceptr p, size_t bytes, CUmem_advise advice,
                                   CUmemLocation location) {
  SIM_ENTRY_CONTEXT(cuMemAdvise_v2);
  return advise(p, bytes, advice, device_of_location(location));
}

extern "C" CUresult cuMemRangeGetAttribute(void* data, size_t size, CUmem_range_attribute which,
                                           CUdeviceptr p, size_t bytes) {
  SIM_ENTRY_CONTEXT(cuMemRangeGetAttribute);
  return attribute(data, size, which, p, bytes);
}

extern "C" CUresult cuMemRangeGetAttributes(void** data, size_t* sizes,
                                            CUmem_range_attribute* which, size_t count,
                                            CUdeviceptr p, size_t bytes) {
  SIM_ENTRY_CONTEXT(cuMemRangeGetAttributes);
  if (data == nullptr || sizes == nullptr || which == nullptr || count == 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < count; ++i) {
    const CUresult result = attribute(data[i], sizes[i], which[i], p, bytes);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}
