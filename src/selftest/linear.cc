// SPDX-License-Identifier: Apache-2.0
// cuMemAlloc and its kin, in every version: each is charged by what the driver takes (above 1 MiB
// in steps of 2 MiB), each free gives it back, and the cap is where it was said to be.
#include <algorithm>
#include <vector>

#include "selftest/driver.h"
#include "selftest/groups.h"
#include "selftest/ledger.h"
#include "selftest/rows.h"

namespace mete::selftest {

namespace {

constexpr std::size_t kAsked = 3 * kMiB;  // not a multiple of what the driver takes
constexpr std::size_t kTaken = 4 * kMiB;
constexpr std::size_t kChunk = 16 * kMiB;

const Ledger& books() { return Ledger::of_this_job(); }

void plain() {
  CUdeviceptr block = 0;
  const std::uint64_t before = books().charged();
  {
    Check check(kCharged, "cuMemAlloc_v2");
    if (check.did(CU(cuMemAlloc_v2)(&block, kAsked)))
      check.equal("3 MiB asked, charged", books().charged() - before, kTaken);
  }
  Check check(kBack, "cuMemFree_v2");
  if (check.did(CU(cuMemFree_v2)(block)))
    check.equal("charged after the free", books().charged() - before, 0);
}

// The interface of CUDA 3.1. Its addresses have 32 bits, and drivers refuse it where theirs have
// more. What is past the cap is refused by the meter, which counts that, before the driver is
// asked.
template <class Call>
void refused_past_the_cap(const char* entry, Call call) {
  Check check(kOver, entry);
  if (books().limit() - books().charged() > 0xffffffffu)
    return check.skip("it cannot ask for more than the cap: its sizes have 32 bits");
  const std::uint64_t before = books().refusals();
  const CUresult result = call();
  check.that(result == CUDA_ERROR_OUT_OF_MEMORY, "4 GiB asked, answers " + describe(result));
  check.equal("refusals counted", books().refusals() - before, 1);
}

void plain_v1() {
  CUdeviceptr_v1 block = 0;
  CUresult allocated = CUDA_SUCCESS;
  const std::uint64_t before = books().charged();
  {
    Check check(kCharged, "cuMemAlloc");
    allocated = CU(cuMemAlloc)(&block, kAsked);
    if (allocated == CUDA_ERROR_OUT_OF_MEMORY)
      check.skip("this driver has no memory below 4 GiB: " + describe(allocated));
    else if (check.did(allocated))
      check.equal("3 MiB asked, charged", books().charged() - before, kTaken);
  }
  {
    Check check(kBack, "cuMemFree");
    if (allocated == CUDA_ERROR_OUT_OF_MEMORY)
      check.skip("this driver has no memory below 4 GiB");
    else if (check.did(allocated, "cuMemAlloc") && check.did(CU(cuMemFree)(block)))
      check.equal("charged after the free", books().charged() - before, 0);
  }
  refused_past_the_cap("cuMemAlloc", [] {
    CUdeviceptr_v1 unused = 0;
    return CU(cuMemAlloc)(&unused, 0xffe00000u);
  });
}

// Narrow rows, padded to many times what was asked for.
void pitch() {
  constexpr unsigned kRows = 16384;
  {
    Check check(kCharged, "cuMemAllocPitch_v2");
    CUdeviceptr block = 0;
    std::size_t row = 0;
    const std::uint64_t before = books().charged();
    if (check.did(CU(cuMemAllocPitch_v2)(&block, &row, 4, kRows, 4))) {
      const std::size_t whole = (row * kRows + kGranule - 1) / kGranule * kGranule;
      check.equal("16384 rows of 4 bytes, charged", books().charged() - before, whole);
      (void)CU(cuMemFree_v2)(block);
    }
  }
  {
    Check check(kCharged, "cuMemAllocPitch");
    CUdeviceptr_v1 block = 0;
    unsigned row = 0;
    const std::uint64_t before = books().charged();
    const CUresult result = CU(cuMemAllocPitch)(&block, &row, 4, kRows, 4);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
      check.skip("this driver has no memory below 4 GiB: " + describe(result));
    } else if (check.did(result)) {
      const std::size_t whole = (std::size_t{row} * kRows + kGranule - 1) / kGranule * kGranule;
      check.equal("16384 rows of 4 bytes, charged", books().charged() - before, whole);
      (void)CU(cuMemFree)(block);
    }
  }
  refused_past_the_cap("cuMemAllocPitch", [] {
    CUdeviceptr_v1 unused = 0;
    unsigned row = 0;
    return CU(cuMemAllocPitch)(&unused, &row, 65536, 65504, 4);
  });
}

void managed() {
  Check check(kCharged, "cuMemAllocManaged");
  CUdeviceptr block = 0;
  const std::uint64_t before = books().charged();
  if (!check.did(CU(cuMemAllocManaged)(&block, kChunk, CU_MEM_ATTACH_GLOBAL))) return;
  check.equal("16 MiB asked, charged", books().charged() - before, kChunk);
  (void)CU(cuMemFree_v2)(block);
  check.equal("after the free", books().charged() - before, 0);
}

// Blocks of 512 bytes share slabs: ten thousand cost some MiB, neither nothing nor 20 GB.
void small_blocks() {
  Check check(kCharged, "cuMemAlloc_v2");
  const std::uint64_t before = books().charged();
  std::vector<CUdeviceptr> blocks(10000);
  for (CUdeviceptr& block : blocks)
    if (!check.did(CU(cuMemAlloc_v2)(&block, 512))) return;
  check.between("10000 blocks of 512 bytes, charged", books().charged() - before, 4 * kMiB,
                16 * kMiB);
  for (const CUdeviceptr block : blocks) (void)CU(cuMemFree_v2)(block);
  check.between("after the frees", books().charged() - before, 0, kGranule);
}

// All that is advertised as free can be had, to within one chunk, and not a byte more.
void fill() {
  Check check(kOver, "cuMemAlloc_v2");
  std::size_t free = 0;
  std::size_t total = 0;
  if (!check.did(CU(cuMemGetInfo_v2)(&free, &total), "cuMemGetInfo_v2")) return;
  // Without a cap this would take the card: it stops a little past what the cap leaves.
  const std::uint64_t enough =
      std::min<std::uint64_t>(free,
                              books().limit() - std::min(books().charged(), books().limit())) +
      4 * kChunk;
  std::vector<CUdeviceptr> blocks;
  CUresult result = CUDA_SUCCESS;
  while (blocks.size() * kChunk < enough) {
    CUdeviceptr block = 0;
    result = CU(cuMemAlloc_v2)(&block, kChunk);
    if (result != CUDA_SUCCESS) break;
    blocks.push_back(block);
  }
  const std::uint64_t got = blocks.size() * kChunk;
  for (const CUdeviceptr block : blocks) (void)CU(cuMemFree_v2)(block);
  check.note("free " + std::to_string(free));
  check.between("got in chunks of 16 MiB", got, free > kChunk ? free - kChunk : 0, free);
  check.that(result == CUDA_ERROR_OUT_OF_MEMORY, "then " + describe(result));
}

}  // namespace

void check_linear(const Task&) {
  (void)start();
  plain();
  plain_v1();
  pitch();
  managed();
  small_blocks();
  fill();
}

}  // namespace mete::selftest
