// SPDX-License-Identifier: Apache-2.0
#include "serve/park_room.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/text.h"

namespace mete::serve {

namespace {

// The smallest share that the request can come to on a card of this machine.
std::optional<Bytes> least_share(const core::Request& request, const core::Pool& pool) {
  std::vector<const core::Card*> cards;
  for (const core::PoolCard& card : pool.cards)
    if (card.unusable.empty()) cards.push_back(&card.card);
  const Result<core::CardOptions> options = core::options_for(request, cards);
  if (!options || options->wanted == 0 || options->cards.empty()) return std::nullopt;
  Bytes least = options->cards.front().limit;
  for (const core::CardOption& option : options->cards) least = std::min(least, option.limit);
  return least;
}

// In whole GiB, upwards: "140G".
std::string in_gib(Bytes bytes) {
  constexpr std::uint64_t kGib = 1ull << 30;
  return std::to_string((bytes.count() + kGib - 1) / kGib) + "G";
}

}  // namespace

std::string park_note(const core::Request& request, const core::Pool& pool, const ParkRoom& room) {
  const std::optional<Bytes> share = least_share(request, pool);
  // Contexts and libraries stay on the card, about this much for each process.
  if (!share || *share <= room.bytes + Bytes::from_gib(std::max(1u, request.procs))) return "";
  std::string text = "the job can be parked only while it uses at most " + to_string(room.bytes) +
                     " of a card; its share is " + to_string(*share) + "\nto park all of it, in " +
                     room.config_file + ": ";
  // Half of the machine is for the programs themselves.
  if (share->count() <= room.host.count() / 2)
    return text + "[park] arena = \"" + in_gib(*share) + "\"";
  return text + "[park] spill = \"/FOLDER\", spill_max = \"" + in_gib(*share) +
         "\" (host memory is too small)";
}

}  // namespace mete::serve
