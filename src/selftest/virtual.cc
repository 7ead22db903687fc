// SPDX-License-Identifier: Apache-2.0
// Virtual memory: handles, mappings and bindings. Memory is charged from its creation until its
// last reference and its last mapping are gone, in either order. Each check makes a handle, maps or
// binds it, releases it, and compares the charge after every step.
#include <cstddef>
#include <string>

#include "selftest/driver.h"
#include "selftest/groups.h"
#include "selftest/ledger.h"
#include "selftest/rows.h"

namespace mete::selftest {

namespace {

constexpr std::size_t kBytes = 32 * kMiB;

const Ledger& books() { return Ledger::of_this_job(); }

bool create(Check& check, const Card& card, std::size_t bytes, CUmemGenericAllocationHandle* out) {
  const CUmemAllocationProp prop = abi::memory_on(card.device);
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
  CUmemAllocationProp prop = abi::memory_on(card.device);
  prop.allocFlags.usage = 1;  // a pool of tiles
  CUmemGenericAllocationHandle handle = 0;
  const std::uint64_t before = books().charged();
  if (!check.did(CU(cuMemCreate)(&handle, kGranule, &prop, 0), "cuMemCreate")) return;
  CUarrayMapInfo info{};
  info.resource.array = array;
  info.subresource.sparseLevel.extentWidth = tiles.tileExtent.width;
  info.subresource.sparseLevel.extentHeight = tiles.tileExtent.height;
  info.subresource.sparseLevel.extentDepth = tiles.tileExtent.depth;
  info.memOperationType = 1;  // map
  info.memHandle.memHandle = handle;
  info.deviceBitMask = 1u << card.device;
  const CUresult mapped = map(&info);
  (void)CU(cuCtxSynchronize)();
  (void)CU(cuMemRelease)(handle);
  if (check.did(mapped)) {
    check.equal("bound to an array, handle released, charged", books().charged() - before,
                kGranule);
    info.memOperationType = 2;  // unmap
    info.memHandle.memHandle = 0;
    if (check.did(map(&info)) && check.did(CU(cuCtxSynchronize)(), "cuCtxSynchronize"))
      check.equal("unbound, charged", books().charged() - before, 0);
  }
  (void)CU(cuArrayDestroy)(array);
}

// Memory bound to a multicast object lives on when its handle is released, until it is unbound or
// the object is gone.
class Multicast {
 public:
  explicit Multicast(const Card& card) : card_(card), before_(books().charged()) {}

  void run() {
    CUmemGenericAllocationHandle group = 0;
    {
      Check check(kCharged, "cuMulticastBindMem");
      if (make(check, &group) && bind(check, group))
        check.equal("bound, handle released, charged", charged(), size_);
    }
    {
      Check check(kBack, "cuMulticastUnbind");
      if (!missing_.empty())
        check.skip(missing_);
      else if (check.did(CU(cuMulticastUnbind)(group, card_.device, 0, size_)))
        check.equal("unbound, charged", charged(), 0);
    }
    {
      Check check(kCharged, "cuMulticastBindAddr");
      if (!missing_.empty())
        check.skip(missing_);
      else if (bind_address(check, group))
        check.equal("bound, handle released and unmapped, charged", charged(), size_);
    }
    if (group != 0) {
      (void)CU(cuMulticastUnbind)(group, card_.device, 0, size_);
      (void)CU(cuMemRelease)(group);
    }
    Check check(kBack, "cuMulticastCreate");
    if (make(check, &group) && bind(check, group) &&
        check.did(CU(cuMemRelease)(group), "cuMemRelease"))
      check.equal("bound, handle and object released, charged", charged(), 0);
  }

 private:
  std::uint64_t charged() const { return books().charged() - before_; }

  // False, and the check is skipped: this machine has no multicast, or not for one card.
  bool make(Check& check, CUmemGenericAllocationHandle* group) {
    CUmulticastObjectProp wanted{};
    wanted.numDevices = 1;
    wanted.size = kBytes;
    std::size_t step = 0;
    CUresult result =
        CU(cuMulticastGetGranularity)(&step, &wanted, CU_MULTICAST_GRANULARITY_RECOMMENDED);
    if (result == CUDA_SUCCESS && step > 0) wanted.size = (kBytes + step - 1) / step * step;
    if (result == CUDA_SUCCESS) result = CU(cuMulticastCreate)(group, &wanted);
    if (result == CUDA_SUCCESS) {
      result = CU(cuMulticastAddDevice)(*group, card_.device);
      if (result != CUDA_SUCCESS) {
        (void)CU(cuMemRelease)(*group);
        *group = 0;
      }
    }
    size_ = wanted.size;
    return usable(check, result);
  }

  bool usable(Check& check, CUresult result) {
    if (result == CUDA_SUCCESS) return true;
    missing_ = "no multicast here: " + describe(result);
    check.skip(missing_);
    return false;
  }

  bool bind(Check& check, CUmemGenericAllocationHandle group) {
    CUmemGenericAllocationHandle handle = 0;
    if (!create(check, card_, size_, &handle)) return false;
    const CUresult bound = CU(cuMulticastBindMem)(group, 0, handle, 0, size_, 0);
    (void)CU(cuMemRelease)(handle);
    return usable(check, bound);
  }

  bool bind_address(Check& check, CUmemGenericAllocationHandle group) {
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr at = 0;
    if (!create(check, card_, size_, &handle) || !reserve(check, size_, &at) ||
        !check.did(CU(cuMemMap)(at, size_, 0, handle, 0), "cuMemMap"))
      return false;
    const CUmemAccessDesc access = abi::access_on(card_.device);
    (void)CU(cuMemSetAccess)(at, size_, &access, 1);
    const CUresult bound = CU(cuMulticastBindAddr)(group, 0, at, size_, 0);
    (void)CU(cuMemRelease)(handle);
    (void)CU(cuMemUnmap)(at, size_);
    (void)CU(cuMemAddressFree)(at, size_);
    return usable(check, bound);
  }

  Card card_;
  std::uint64_t before_;
  std::size_t size_ = 0;
  std::string missing_;
};

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
  Multicast(card).run();
}

}  // namespace mete::selftest
