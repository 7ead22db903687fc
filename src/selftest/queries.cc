// SPDX-License-Identifier: Apache-2.0
// What CUDA reports about the card: its size is the cap, and what is not free is what is charged.
// The 32-bit cuDeviceTotalMem of CUDA 3.1 returns the largest number that it can hold.
#include <algorithm>

#include "selftest/driver.h"
#include "selftest/groups.h"
#include "selftest/ledger.h"
#include "selftest/rows.h"

namespace mete::selftest {

namespace {

std::uint64_t narrow(std::uint64_t bytes) { return std::min<std::uint64_t>(bytes, 0xffffffffu); }

}  // namespace

void check_queries(const Task&) {
  const Card card = start();
  const Ledger& books = Ledger::of_this_job();
  {
    Check check(kHonest, "cuMemGetInfo_v2");
    std::size_t free = 0;
    std::size_t total = 0;
    if (check.did(CU(cuMemGetInfo_v2)(&free, &total))) {
      check.equal("total", total, books.limit());
      check.equal("free", free, books.free());
    }
  }
  {
    Check check(kHonest, "cuDeviceTotalMem_v2");
    std::size_t total = 0;
    if (check.did(CU(cuDeviceTotalMem_v2)(&total, card.device)))
      check.equal("total", total, books.limit());
  }
  Check check(kHonest, "cuDeviceTotalMem");
  unsigned total = 0;
  if (check.did(CU(cuDeviceTotalMem)(&total, card.device)))
    check.equal("total", total, narrow(books.limit()));
}

}  // namespace mete::selftest
