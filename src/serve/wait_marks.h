// SPDX-License-Identifier: Apache-2.0
// Numbers that stand for waits in the tags of long polls: two waits have the same number if and
// only if they are equal (except for a 64-bit collision). Thousands of runners that share a wait
// share its number, computed once.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "wire/wait_text.h"

namespace mete::serve {

class WaitMarks {
 public:
  // The most waits that are remembered; beyond, all are forgotten and computed again.
  static constexpr std::size_t kMost = 4096;

  std::uint64_t mark_of(const core::SharedWait& wait);

 private:
  // Keeping the wait ensures that no other wait gets its address.
  std::map<const core::Wait*, std::pair<core::SharedWait, std::uint64_t>> marks_;
};

}  // namespace mete::serve
