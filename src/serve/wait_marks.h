// SPDX-License-Identifier: Apache-2.0
// Numbers that stand for waits in the tags of long polls: two waits have one number if and only if
// they are equal (but for a collision of 64 bits). Thousands of runners that share a wait ask for
// one number, which is made once.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "wire/wait_text.h"

namespace mete::serve {

class WaitMarks {
 public:
  // At most so many are remembered; beyond, all are forgotten and made again.
  static constexpr std::size_t kMost = 4096;

  std::uint64_t mark_of(const core::SharedWait& wait);

 private:
  // A wait that is kept cannot be followed by another one at its address.
  std::map<const core::Wait*, std::pair<core::SharedWait, std::uint64_t>> marks_;
};

}  // namespace mete::serve
