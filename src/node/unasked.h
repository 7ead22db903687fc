// SPDX-License-Identifier: Apache-2.0
// What a process holds on a card beyond its charge, and how much of its charge it does not need,
// from one reading of NVML to the next. Pure. Quantities are in units of the grant file.
//
//   excess   held + headroom − charge, where the charge is the highest one while NVML was read;
//            the lower one of two readings in a row, so that a block that was allocated and freed
//            in between is no excess
//   spare    charge − headroom − held, once nothing has changed for nine readings in a row: neither
//            figure, and no call was inside the driver
#pragma once

#include <cstdint>

namespace mete::node {

// One process on one card, by one reading.
struct Holding {
  std::uint64_t held = 0;  // NVML's figure; 0: nothing, or not reported
  // The charge that covers that, before, while and after NVML was read.
  std::uint64_t least = 0;
  std::uint64_t most = 0;
  std::uint64_t lent = 0;   // how much of its reserve was given back
  bool is_settled = false;  // everything charged is held, as far as can be known
};

class Unasked {
 public:
  static constexpr unsigned kSame = 8;  // equal readings in a row, about two seconds

  struct Verdict {
    std::uint64_t excess = 0;
    std::uint64_t spare = 0;
    bool operator==(const Verdict&) const = default;
  };
  Verdict see(const Holding& now);

 private:
  std::uint64_t excess_ = 0;   // by the last reading only
  std::uint64_t held_ = 0;     // 0: something was under way
  std::uint64_t charged_ = 0;  // including what was lent: lending changes nothing here
  unsigned same_ = 0;
};

}  // namespace mete::node
