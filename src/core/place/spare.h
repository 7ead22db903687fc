// SPDX-License-Identifier: Apache-2.0
// A quick no: what a pool has to give at most, looked at once, so that thousands of requests that
// are too large for it need not be placed to be refused. It never refuses what place_now() would
// place; what it lets through may still have no room (types, devices, processes).
#pragma once

#include <cstdint>
#include <vector>

#include "core/place/place.h"

namespace mete::core {

// What matters of a request then: so much on each of so many cards.
struct Least {
  enum class What : std::uint8_t { kAnything, kBytes, kMilli, kWholeCard };
  What what = What::kAnything;  // kAnything: it may do without a card, or it is not so easily said
  std::uint32_t cards = 0;
  std::uint64_t amount = 0;  // bytes, or thousandths of the card
};
Least least_of(const Request& request);

class Spare {
 public:
  explicit Spare(const Pool& pool);
  bool may_have(const Least& least) const;
  bool may_have(const Request& request) const { return may_have(least_of(request)); }

 private:
  struct Free {
    Bytes capacity;
    Bytes bytes;         // for a share
    bool whole = false;  // nobody has anything of it
  };
  std::vector<Free> cards_;  // that have something
};

}  // namespace mete::core
