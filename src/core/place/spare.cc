// SPDX-License-Identifier: Apache-2.0
// See spare.h.
#include "core/place/spare.h"

#include "core/place/room.h"

namespace mete::core {

namespace {

std::size_t least_cards(const Request& request) {
  if (!request.devices.empty()) return request.devices.size();
  const CardCount& count = request.gpu->cards;
  return count.kind == CardCount::Kind::kNumber ? count.number : 1;  // `all` is at least one
}

}  // namespace

Spare::Spare(const Pool& pool) {
  for (const PoolCard& card : pool.cards) {
    const Bytes bytes = card.grantable();
    if (bytes.is_zero()) continue;
    const bool whole = !used_on(card).occupied;
    cards_.push_back({card.card.capacity, bytes, whole});
  }
}

Least least_of(const Request& request) {
  Least least;
  if (request.or_cpu || request.gpu == no_gpu()) return least;
  if (!request.gpu && request.devices.empty()) return least;  // place_now() gives the error
  const Memory memory = request.gpu ? request.gpu->memory : Memory{WholeCard{}};
  if (const auto* size = std::get_if<Size>(&memory)) {
    least.what = Least::What::kBytes;
    least.amount = size->bytes.round_down(kGranule).count();
  } else if (const auto* growing = std::get_if<Growing>(&memory)) {
    least.what = Least::What::kBytes;
    least.amount = growing->from.round_down(kGranule).count();
  } else if (request.parkable && std::holds_alternative<Fraction>(memory)) {
    return least;  // its size depends on the mover
  } else if (const auto* fraction = std::get_if<Fraction>(&memory)) {
    least.what = Least::What::kMilli;
    least.amount = fraction->milli;
  } else if (std::holds_alternative<WholeCard>(memory)) {
    least.what = Least::What::kWholeCard;
  }
  least.cards = static_cast<std::uint32_t>(least_cards(request));
  return least;
}

bool Spare::may_have(const Least& least) const {
  if (least.what == Least::What::kAnything) return true;
  std::uint32_t missing = least.cards;
  for (const Free& card : cards_) {
    if (missing == 0) break;
    Bytes needed;
    if (least.what == Least::What::kBytes) needed = Bytes::from_bytes(least.amount);
    if (least.what == Least::What::kMilli)
      needed = card.capacity.checked_scale(least.amount, 1000)->round_down(kGranule);
    if (needed <= card.bytes && (card.whole || least.what != Least::What::kWholeCard)) --missing;
  }
  return missing == 0;
}

}  // namespace mete::core
