// SPDX-License-Identifier: Apache-2.0
// What a process holds on a card beyond its charge, and how much of its charge it does not need:
// from one reading of NVML to the next. Pure. Quantities in units of the grant file.
//
//   excess   held + headroom − charge, where the charge is the highest one while NVML was asked;
//            and of two readings in a row the lower one, so that a block that came and went in
//            between is no excess
//   spare    charge − headroom − held, once nothing has moved for nine readings in a row: neither
//            figure, and no call was inside the driver
#pragma once

#include <cstdint>

namespace mete::node {

// One process on one card, by one reading.
struct Holding {
  std::uint64_t held = 0;  // as NVML says; 0: nothing, or not told
  // What covers that, before, while and after NVML was asked.
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  std::uint64_t lent = 0;   // what was given back of its reserve
  bool is_settled = false;  // all that is charged is held, as far as can be known
};

class Unasked {
 public:
  static constexpr unsigned kSame = 8;  // readings like the one before, about two seconds

  struct Verdict {
    std::uint64_t excess = 0;
    std::uint64_t spare = 0;
    bool operator==(const Verdict&) const = default;
  };
  Verdict see(const Holding& now);

 private:
  std::uint64_t excess_ = 0;   // by the last reading alone
  std::uint64_t held_ = 0;     // 0: something was under way
  std::uint64_t charged_ = 0;  // with what was lent: that being lent moves nothing
  unsigned same_ = 0;
};

}  // namespace mete::node
