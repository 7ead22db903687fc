// SPDX-License-Identifier: Apache-2.0
// Virtual memory: handles, mappings and bindings. Memory is charged from its creation until its
// last reference and its last mapping are gone, whichever goes first.
#include <cstddef>

#include "selftest/driver.h"
#include "selftest/groups.h"
#include "selftest/ledger.h"
#include "selftest/rows.h"

namespace mete::selftest {

namespace {

constexpr std::size_t kBytes = 32 * kMiB;

const Ledger& books() { return Ledger::of_this_job(); }

bool create(Check& check, const Card& card, std::size_t bytes, CUmemGenericAllocationHandle* out) {
  const CUmemAllocationProp prop = memory_on(card);
  return check.did(CU(cuMemCreate)(out, bytes, &prop, 0), "cuMemCreate");
}

bool reserve(Check& check, std::size_t bytes, CUdeviceptr* out) {
  return check.did(CU(cuMemAddressReserve)(out, bytes, 0, 0, 0), "cuMemAddressReserve");
}

void handles(const Card& card) {
  CUmemGenericAllocationHandle handle = 0;
  const std::uint64_t before = books().charged();
  {
    Check check(kCharged, "cuMemCreate");
    if (!create(check, card, kBytes, &handle)) return;
    check.equal("32 MiB asked, charged", books().charged() - before, kBytes);
  }
  Check check(kBack, "cuMemRelease");
  if (check.did(CU(cuMemRelease)(handle)))
    check.equal("charged after the release", books().charged() - before, 0);
}

void mappings(const Card& card) {
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr at = 0;
  const std::uint64_t before = books().charged();
  {
    Check check(kCharged, "cuMemMap");
    if (!create(check, card, kBytes, &handle) || !reserve(check, kBytes, &at) ||
        !check.did(CU(cuMemMap)(at, kBytes, 0, handle, 0)) ||
        !check.did(CU(cuMemRelease)(handle), "cuMemRelease"))
      return;
    check.equal("mapped, handle released, charged", books().charged() - before, kBytes);
  }
  {
    Check check(kBack, "cuMemUnmap");
    if (check.did(CU(cuMemUnmap)(at, kBytes)))
      check.equal("charged after the unmap", books().charged() - before, 0);
  }
  (void)CU(cuMemAddressFree)(at, kBytes);
}

void retained(const Card& card) {
  Check check(kCharged, "cuMemRetainAllocationHandle");
  CUmemGenericAllocationHandle handle = 0;
  CUmemGenericAllocationHandle again = 0;
  CUdeviceptr at = 0;
  const std::uint64_t before = books().charged();
  if (!create(check, card, kBytes, &handle) || !reserve(check, kBytes, &at) ||
      !check.did(CU(cuMemMap)(at, kBytes, 0, handle, 0), "cuMemMap") ||
      // The driver takes an address on the card as a pointer.
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      !check.did(CU(cuMemRetainAllocationHandle)(&again, reinterpret_cast<void*>(at))))
    return;
  (void)CU(cuMemRelease)(handle);
  (void)CU(cuMemUnmap)(at, kBytes);
  check.equal("released and unmapped, retained, charged", books().charged() - before, kBytes);
  (void)CU(cuMemRelease)(again);
  (void)CU(cuMemAddressFree)(at, kBytes);
  check.equal("after the last release", books().charged() - before, 0);
}

// CUarrayMapInfo, as the driver has it since CUDA 11.1.
struct ArrayMapInfo {
  int resource_type;
  void* resource;
  int subresource_type;
  alignas(8) unsigned level;
  unsigned layer, offset_x, offset_y, offset_z, width, height, depth;
  int operation;
  int handle_type;
  CUmemGenericAllocationHandle handle;
  unsigned long long offset;
  unsigned devices;
  unsigned flags;
  unsigned reserved[2];
};
static_assert(sizeof(ArrayMapInfo) == 96 && offsetof(ArrayMapInfo, handle) == 64);
static_assert(offsetof(ArrayMapInfo, level) == 24);

// Memory bound to a sparse array lives on when its handle is released.
template <class Map>
void sparse_array(const Card& card, const char* entry, Map map) {
  Check check(kCharged, entry);
  const CUDA_ARRAY3D_DESCRIPTOR shape{1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_SPARSE};
  CUarray array = nullptr;
  CUDA_ARRAY_SPARSE_PROPERTIES tiles{};
  const CUresult made = CU(cuArray3DCreate_v2)(&array, &shape);
  if (made != CUDA_SUCCESS) return check.skip("no sparse arrays here: " + describe(made));
  if (!check.did(CU(cuArrayGetSparseProperties)(&tiles, array), "cuArrayGetSparseProperties"))
    return;
  CUmemAllocationProp prop = memory_on(card);
  prop.allocFlags.usage = 1;  // a pool of tiles
  CUmemGenericAllocationHandle handle = 0;
  const std::uint64_t before = books().charged();
  if (!check.did(CU(cuMemCreate)(&handle, kGranule, &prop, 0), "cuMemCreate")) return;
  ArrayMapInfo info{};
  info.resource = array;
  info.width = tiles.tileExtent.width;
  info.height = tiles.tileExtent.height;
  info.depth = tiles.tileExtent.depth;
  info.operation = 1;  // map
  info.handle = handle;
  info.devices = 1u << card.device;
  const CUresult mapped = map(reinterpret_cast<CUarrayMapInfo*>(&info));
  (void)CU(cuCtxSynchronize)();
  (void)CU(cuMemRelease)(handle);
  if (check.did(mapped)) {
    check.equal("bound to an array, handle released, charged", books().charged() - before,
                kGranule);
  }
  (void)CU(cuArrayDestroy)(array);
}

void multicast(const Card& card) {
  Check check(kCharged, "cuMulticastBindMem");
  CUmulticastObjectProp wanted{};
  wanted.numDevices = 1;
  wanted.size = kBytes;
  CUmemGenericAllocationHandle group = 0;
  std::size_t step = 0;
  const CUresult asked =
      CU(cuMulticastGetGranularity)(&step, &wanted, CU_MULTICAST_GRANULARITY_RECOMMENDED);
  if (asked == CUDA_SUCCESS && step > 0) wanted.size = (kBytes + step - 1) / step * step;
  const CUresult made = asked == CUDA_SUCCESS ? CU(cuMulticastCreate)(&group, &wanted) : asked;
  if (made != CUDA_SUCCESS) return check.skip("no multicast here: " + describe(made));
  const CUresult added = CU(cuMulticastAddDevice)(group, card.device);
  CUmemGenericAllocationHandle handle = 0;
  const std::uint64_t before = books().charged();
  const CUmemAllocationProp prop = memory_on(card);
  if (added != CUDA_SUCCESS) {
    check.skip("no multicast here: " + describe(added));
  } else if (check.did(CU(cuMemCreate)(&handle, wanted.size, &prop, 0), "cuMemCreate")) {
    const CUresult bound = CU(cuMulticastBindMem)(group, 0, handle, 0, wanted.size, 0);
    (void)CU(cuMemRelease)(handle);
    if (bound == CUDA_SUCCESS)
      check.equal("bound, handle released, charged", books().charged() - before, wanted.size);
    else
      check.skip("no multicast here: " + describe(bound));
  }
  (void)CU(cuMemRelease)(group);
}

}  // namespace

void check_virtual(const Task&) {
  const Card card = start();
  handles(card);
  mappings(card);
  retained(card);
  sparse_array(card, "cuMemMapArrayAsync",
               [](CUarrayMapInfo* info) { return CU(cuMemMapArrayAsync)(info, 1, nullptr); });
  sparse_array(card, "cuMemMapArrayAsync_ptsz",
               [](CUarrayMapInfo* info) { return CU(cuMemMapArrayAsync_ptsz)(info, 1, nullptr); });
  multicast(card);
}

}  // namespace mete::selftest
