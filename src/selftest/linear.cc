// SPDX-License-Identifier: Apache-2.0
// cuMemAlloc and its relatives: each is charged by what the driver takes (above 1 MiB in steps of 2
// MiB), each free gives it back, and the cap is where it should be.
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

// Narrow rows, padded to many times their size.
void pitch() {
  constexpr unsigned kRows = 16384;
  Check check(kCharged, "cuMemAllocPitch_v2");
  CUdeviceptr block = 0;
  std::size_t row = 0;
  const std::uint64_t before = books().charged();
  if (!check.did(CU(cuMemAllocPitch_v2)(&block, &row, 4, kRows, 4))) return;
  const std::size_t whole = (row * kRows + kGranule - 1) / kGranule * kGranule;
  check.equal("16384 rows of 4 bytes, charged", books().charged() - before, whole);
  (void)CU(cuMemFree_v2)(block);
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

// All memory that is reported as free can be allocated, to within one chunk, and not a byte more.
void fill() {
  Check check(kOver, "cuMemAlloc_v2");
  std::size_t free = 0;
  std::size_t total = 0;
  if (!check.did(CU(cuMemGetInfo_v2)(&free, &total), "cuMemGetInfo_v2")) return;
  // Without a cap this would take the whole card: it stops a little past what the cap leaves.
  const std::uint64_t enough = std::min<std::uint64_t>(free, books().free()) + 4 * kChunk;
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
  pitch();
  managed();
  small_blocks();
  fill();
}

}  // namespace mete::selftest
