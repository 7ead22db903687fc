// SPDX-License-Identifier: Apache-2.0
// See spare.h.
#include "core/place/spare.h"

#include <algorithm>

namespace mete::core {

namespace {

std::size_t least_cards(const Request& request) {
  if (!request.devices.empty()) return request.devices.size();
  const CardCount& count = request.gpu->cards;
  return count.kind == CardCount::Kind::kNumber ? count.number : 1;  // of all at least one
}

}  // namespace

Spare::Spare(const Pool& pool) {
  for (const PoolCard& card : pool.cards) {
    const Bytes bytes = card.grantable();
    if (bytes.is_zero()) continue;
    const bool whole = card.holders.empty() && card.claimed.empty() && card.kept.is_zero();
    cards_.push_back({card.card.capacity, bytes, whole});
  }
}

bool Spare::may_have(const Request& request) const {
  if (request.or_cpu || request.gpu == no_gpu()) return true;
  if (!request.gpu && request.devices.empty()) return true;  // an error, which has its own words
  const Memory memory = request.gpu ? request.gpu->memory : Memory{WholeCard{}};
  const auto* size = std::get_if<Size>(&memory);
  const auto* fraction = std::get_if<Fraction>(&memory);
  const auto fits = [&](const Free& card) {
    if (size != nullptr) return size->bytes.round_down(kGranule) <= card.bytes;
    if (fraction != nullptr)
      return card.capacity.checked_scale(fraction->milli, 1000)->round_down(kGranule) <= card.bytes;
    return card.whole || !std::holds_alternative<WholeCard>(memory);
  };
  return static_cast<std::size_t>(std::count_if(cards_.begin(), cards_.end(), fits)) >=
         least_cards(request);
}

}  // namespace mete::core
