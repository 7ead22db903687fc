// SPDX-License-Identifier: Apache-2.0
// Pools that are not on one card (CUDA 13): what a pool of managed memory has committed is charged,
// a pool on the host costs nothing. Each way to get such a pool has a process of its own: two of
// them lead to one pool, which would then be known already.
#include <functional>

#include "selftest/driver.h"
#include "selftest/groups.h"
#include "selftest/ledger.h"
#include "selftest/rows.h"

namespace mete::selftest {

namespace {

constexpr std::size_t kBytes = 40 * kMiB;

using Find = std::function<CUresult(CUmemoryPool*, CUmemLocation*, CUmemAllocationType)>;

std::uint64_t charged() { return Ledger::of_this_job().charged(); }

void try_pool(const char* entry, CUmemLocation where, CUmemAllocationType type, const Find& find) {
  const bool managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;
  Check check(kCharged, entry);
  CUmemoryPool pool = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr block = 0;
  const std::uint64_t before = charged();
  if (!check.did(find(&pool, &where, type)) ||
      !check.did(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate") ||
      !check.did(CU(cuMemAllocFromPoolAsync)(&block, kBytes, pool, stream),
                 "cuMemAllocFromPoolAsync"))
    return;
  if (managed)
    check.between("40 MiB of managed memory, charged", charged() - before, kBytes, 2 * kBytes);
  else
    check.equal("40 MiB on the host, charged", charged() - before, 0);
  (void)CU(cuMemFreeAsync)(block, stream);
  (void)CU(cuStreamSynchronize)(stream);
  (void)CU(cuMemPoolTrimTo)(pool, 0);
  check.equal("given back, charged", charged() - before, 0);
  (void)CU(cuStreamDestroy_v2)(stream);
}

CUresult make_pool(CUmemoryPool* out, CUmemLocation* where, CUmemAllocationType type) {
  CUmemPoolProps props{};
  props.allocType = type;
  props.location = *where;
  return CU(cuMemPoolCreate)(out, &props);
}

}  // namespace

void check_managed(const Task&) {
  const CUmemLocation on_card{CU_MEM_LOCATION_TYPE_DEVICE, start().device};
  const CUmemLocation on_host{CU_MEM_LOCATION_TYPE_HOST, 0};
  try_pool("cuMemGetDefaultMemPool", on_card, CU_MEM_ALLOCATION_TYPE_MANAGED,
           CU(cuMemGetDefaultMemPool));
  try_pool("cuMemPoolCreate", on_card, CU_MEM_ALLOCATION_TYPE_MANAGED, make_pool);
  try_pool("cuMemPoolCreate", on_host, CU_MEM_ALLOCATION_TYPE_PINNED, make_pool);
}

void check_current_managed(const Task&) {
  const CUmemLocation on_card{CU_MEM_LOCATION_TYPE_DEVICE, start().device};
  try_pool("cuMemGetMemPool", on_card, CU_MEM_ALLOCATION_TYPE_MANAGED, CU(cuMemGetMemPool));
}

}  // namespace mete::selftest
