// SPDX-License-Identifier: Apache-2.0
// Stream-ordered pools: the charge must equal what the pools hold (RESERVED), at once after every
// call that can change it. Freed memory comes back at a synchronising call; each such call is
// tried.
#include <functional>

#include "selftest/driver.h"
#include "selftest/groups.h"
#include "selftest/ledger.h"
#include "selftest/rows.h"

namespace mete::selftest {

namespace {

constexpr std::size_t kBytes = 40 * kMiB;  // two growth steps of a pool

using Allocate = std::function<CUresult(CUdeviceptr*)>;
using Act = std::function<CUresult()>;

class Pools {
 public:
  explicit Pools(const Card& card) : card_(card), base_(Ledger::of_this_job().charged()) {
    (void)CU(cuStreamCreate)(&stream_, CU_STREAM_NON_BLOCKING);
    (void)CU(cuDeviceGetDefaultMemPool)(&usual_, card.device);
  }

  void run() {
    allocations();
    synchronisations();
    own_pool();
    current_pool();
    kept_memory();
  }

 private:
  // Charge and driver agree, and the pools hold memory or not, as expected.
  void agree(Check& check, bool holding, CUmemoryPool own = nullptr) const {
    const std::uint64_t held = reserved_by(usual_) + (own != nullptr ? reserved_by(own) : 0);
    check.equal("the pool holds " + std::to_string(held) + ", charged",
                Ledger::of_this_job().charged() - base_, held);
    if (holding && held == 0) check.that(false, "the pool holds nothing");
    if (!holding && held > 0) check.skip("this driver keeps the memory at this call");
  }

  // Back to a pool that holds nothing, and a charge that shows it.
  void quiet() const {
    (void)CU(cuStreamSynchronize)(stream_);
    (void)CU(cuMemPoolTrimTo)(usual_, 0);
  }

  void pair(const char* allocate_name, const Allocate& allocate, const char* free_name,
            const std::function<CUresult(CUdeviceptr)>& release) {
    quiet();
    CUdeviceptr block = 0;
    {
      Check check(kCharged, allocate_name);
      if (!check.did(allocate(&block))) return;
      agree(check, true);
    }
    if (free_name == nullptr) {
      (void)release(block);
      return quiet();
    }
    Check check(kBack, free_name);
    if (check.did(release(block)) &&
        check.did(CU(cuStreamSynchronize)(stream_), "cuStreamSynchronize"))
      agree(check, false);
  }

  void allocations() {
    const auto release = [&](CUdeviceptr p) { return CU(cuMemFreeAsync)(p, stream_); };
    pair(
        "cuMemAllocAsync", [&](CUdeviceptr* p) { return CU(cuMemAllocAsync)(p, kBytes, stream_); },
        "cuMemFreeAsync", release);
    pair(
        "cuMemAllocAsync_ptsz",
        [&](CUdeviceptr* p) { return CU(cuMemAllocAsync_ptsz)(p, kBytes, stream_); },
        "cuMemFreeAsync_ptsz", [&](CUdeviceptr p) { return CU(cuMemFreeAsync_ptsz)(p, stream_); });
    pair(
        "cuMemAllocFromPoolAsync",
        [&](CUdeviceptr* p) { return CU(cuMemAllocFromPoolAsync)(p, kBytes, usual_, stream_); },
        nullptr, release);
    pair(
        "cuMemAllocFromPoolAsync_ptsz",
        [&](CUdeviceptr* p) {
          return CU(cuMemAllocFromPoolAsync_ptsz)(p, kBytes, usual_, stream_);
        },
        nullptr, release);
  }

  // A free that the host has not seen yet, then one synchronising call.
  void synchronises(const char* entry, const Act& act) {
    quiet();
    Check check(kBack, entry);
    CUdeviceptr block = 0;
    if (!check.did(CU(cuMemAllocAsync)(&block, kBytes, stream_), "cuMemAllocAsync") ||
        !check.did(CU(cuMemFreeAsync)(block, stream_), "cuMemFreeAsync") || !check.did(act()))
      return;
    agree(check, false);
  }

  void synchronisations() {
    synchronises("cuStreamSynchronize", [&] { return CU(cuStreamSynchronize)(stream_); });
    synchronises("cuStreamSynchronize_ptsz", [&] { return CU(cuStreamSynchronize_ptsz)(stream_); });
    synchronises("cuEventSynchronize", [&] {
      CUevent event = nullptr;
      CUresult result = CU(cuEventCreate)(&event, 0);
      if (result == CUDA_SUCCESS) result = CU(cuEventRecord)(event, stream_);
      if (result == CUDA_SUCCESS) result = CU(cuEventSynchronize)(event);
      if (event != nullptr) (void)CU(cuEventDestroy_v2)(event);
      return result;
    });
    synchronises("cuCtxSynchronize", [] { return CU(cuCtxSynchronize)(); });
    synchronises("cuCtxSynchronize_v2", [&] { return CU(cuCtxSynchronize_v2)(card_.context); });
  }

  bool make_pool(Check& check, CUmemoryPool* pool) const {
    const CUmemPoolProps props = abi::pool_on(card_.device);
    return check.did(CU(cuMemPoolCreate)(pool, &props), "cuMemPoolCreate");
  }
  void release(CUdeviceptr block) const {
    (void)CU(cuMemFreeAsync)(block, stream_);
    (void)CU(cuStreamSynchronize)(stream_);
  }

  void own_pool() {
    quiet();
    Check check(kCharged, "cuMemPoolCreate");
    CUmemoryPool pool = nullptr;
    CUdeviceptr block = 0;
    if (!make_pool(check, &pool)) return;
    if (check.did(CU(cuMemAllocFromPoolAsync)(&block, kBytes, pool, stream_),
                  "cuMemAllocFromPoolAsync")) {
      agree(check, true, pool);
      release(block);
    }
    (void)CU(cuMemPoolDestroy)(pool);
  }

  // The pool that plain allocations take from is changed between two of them.
  void changes_pool(const char* entry, const std::function<CUresult(CUmemoryPool)>& change) {
    quiet();
    Check check(kCharged, entry);
    CUmemoryPool pool = nullptr;
    CUdeviceptr block = 0;
    if (!check.did(CU(cuMemAllocAsync)(&block, kBytes, stream_), "cuMemAllocAsync")) return;
    release(block);
    if (!make_pool(check, &pool)) return;
    if (check.did(change(pool)) &&
        check.did(CU(cuMemAllocAsync)(&block, kBytes, stream_), "cuMemAllocAsync")) {
      check.that(reserved_by(pool) > 0, "the new pool is used");
      agree(check, true, pool);
      release(block);
      (void)change(usual_);
    }
    (void)CU(cuMemPoolDestroy)(pool);
  }

  void current_pool() {
    changes_pool("cuDeviceSetMemPool",
                 [&](CUmemoryPool pool) { return CU(cuDeviceSetMemPool)(card_.device, pool); });
    changes_pool("cuMemSetMemPool", [&](CUmemoryPool pool) {
      CUmemLocation where{CU_MEM_LOCATION_TYPE_DEVICE, card_.device};
      return CU(cuMemSetMemPool)(&where, CU_MEM_ALLOCATION_TYPE_PINNED, pool);
    });
  }

  static CUresult keep(CUmemoryPool pool, cuuint64_t bytes) {
    return CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes);
  }

  // A pool of the program's own that keeps what was freed into it.
  bool keeping_pool(Check& check, CUmemoryPool* pool, std::size_t bytes) const {
    CUdeviceptr block = 0;
    if (!make_pool(check, pool) ||
        !check.did(keep(*pool, ~cuuint64_t{0}), "cuMemPoolSetAttribute") ||
        !check.did(CU(cuMemAllocFromPoolAsync)(&block, bytes, *pool, stream_),
                   "cuMemAllocFromPoolAsync"))
      return false;
    release(block);
    return true;
  }

  void kept_memory() {
    quiet();
    CUmemoryPool pool = nullptr;
    {
      Check check(kBack, "cuMemPoolTrimTo");
      if (keeping_pool(check, &pool, kBytes)) {
        agree(check, true, pool);
        if (check.did(CU(cuMemPoolTrimTo)(pool, 0))) agree(check, false, pool);
      }
    }
    (void)CU(cuMemPoolDestroy)(pool);
    {
      Check check(kBack, "cuMemPoolDestroy");
      if (keeping_pool(check, &pool, kBytes) && check.did(CU(cuMemPoolDestroy)(pool)))
        agree(check, false);
    }
    reclaim();
  }

  // Memory that a pool keeps without using it is reclaimed before an allocation is refused.
  void reclaim() const {
    Check check(kBack, "cuMemAlloc_v2");
    std::size_t free = 0;
    std::size_t total = 0;
    if (!check.did(CU(cuMemGetInfo_v2)(&free, &total), "cuMemGetInfo_v2")) return;
    CUmemoryPool pool = nullptr;
    CUdeviceptr block = 0;
    if (!keeping_pool(check, &pool, free / 2)) return;
    const std::size_t wanted = free / 4 * 3 / kGranule * kGranule;
    if (check.did(CU(cuMemAlloc_v2)(&block, wanted))) {
      check.note("a pool kept " + std::to_string(free / 2) + " of " + std::to_string(free) +
                 " free bytes, then got " + std::to_string(wanted));
      (void)CU(cuMemFree_v2)(block);
    }
    (void)CU(cuMemPoolDestroy)(pool);
  }

  Card card_;
  std::uint64_t base_;
  CUstream stream_ = nullptr;
  CUmemoryPool usual_ = nullptr;
};

}  // namespace

void check_pools(const Task&) { Pools(start()).run(); }

}  // namespace mete::selftest
