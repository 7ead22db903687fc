// SPDX-License-Identifier: Apache-2.0
// A fast refusal: the most that a pool can give, computed once, so that thousands of requests that
// are too large are refused without being placed. It never refuses what place_now() would place;
// what it lets through may still have no room (types, devices, processes).
#pragma once

#include <cstdint>
#include <vector>

#include "core/place/place.h"

namespace mete::core {

// What matters of a request here: an amount on each of a number of cards.
struct Least {
  enum class What : std::uint8_t { kAnything, kBytes, kMilli, kWholeCard };
  What what = What::kAnything;  // kAnything: needs no card, or is not this simple
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
    bool whole = false;  // the card is empty
  };
  std::vector<Free> cards_;  // cards with something left
};

}  // namespace mete::core
