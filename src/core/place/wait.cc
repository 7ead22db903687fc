// SPDX-License-Identifier: Apache-2.0
// See wait.h. Names come from users and from processes, so every one of them is made printable.
#include "core/place/wait.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/text.h"

namespace mete::core {

namespace {

constexpr std::size_t kNamedCards = 4;
constexpr std::size_t kNamedHolders = 3;

// quote() without its quotes: one line, no control characters, of bounded length.
std::string printable(const std::string& text) {
  const std::string quoted = base::quote(text);
  return quoted.substr(1, quoted.size() - 2);
}

std::string name_of(const Holder& holder) {
  std::string name = printable(holder.user) + "'s job " + to_string(holder.job);
  if (!holder.name.empty()) name += " (" + printable(holder.name) + ")";
  return name;
}

// Those with the most memory first; the order in which the pool lists them says nothing.
std::vector<const Holder*> by_size(const PoolCard& card) {
  std::vector<const Holder*> holders;
  holders.reserve(card.holders.size());
  for (const Holder& holder : card.holders) holders.push_back(&holder);
  std::sort(holders.begin(), holders.end(), [](const Holder* a, const Holder* b) {
    return std::tie(b->bytes, a->job) < std::tie(a->bytes, b->job);
  });
  return holders;
}

// "alice's job 12 (train) holds 55.9 GiB, process 412 of bob holds 3 GiB, and 2 others".
std::string who_is_on(const PoolCard& card) {
  struct Share {
    Bytes bytes;
    std::string who;
    bool beyond_grant = false;
  };
  std::vector<Share> shares;
  for (const Holder& holder : card.holders)
    shares.push_back({holder.bytes, name_of(holder) + (holder.parked ? ", parked," : "")});
  for (const std::vector<Outside>* list : {&card.claimed, &card.foreign})
    for (const Outside& outside : *list)
      if (!outside.bytes.is_zero())
        shares.push_back({outside.bytes, printable(outside.who), outside.job.has_value()});
  std::sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) {
    return std::tie(b.bytes, a.who) < std::tie(a.bytes, b.who);
  });
  std::vector<std::string> parts;
  for (const Share& share : shares) {
    if (parts.size() == kNamedHolders) break;
    parts.push_back(share.who + " holds " + to_string(share.bytes) +
                    (share.beyond_grant ? " beyond its grant" : ""));
  }
  if (const std::size_t more = shares.size() - parts.size(); more > 0)
    parts.push_back("and " + std::to_string(more) + (more == 1 ? " other" : " others"));
  if (!card.kept.is_zero())
    parts.push_back(to_string(card.kept) + " is kept for a job ahead in line");
  return base::join(parts, ", ");
}

// "8 GiB on one card", "40% of each of 2 cards, 1 has room now", "card 3 for itself".
std::string for_what(const Pool& pool, const Needs& needs, std::size_t with_room) {
  const std::size_t wanted = needs.wanted;
  std::string cards = std::to_string(wanted) + " cards";
  if (wanted == 1)
    cards = needs.named ? "card " + std::to_string(pool.cards[needs.cards.front().at].card.index)
                        : "one card";
  const std::string each = wanted == 1 ? cards : "each of " + cards;
  std::string text;
  if (const auto* size = std::get_if<Size>(&needs.gpu.memory))
    text = to_string(size->bytes) + " on " + each;
  else if (std::holds_alternative<WholeCard>(needs.gpu.memory))
    text = cards + " for itself";
  else
    text = to_string(GpuRequest{{CardCount::Kind::kOne, 0}, needs.gpu.memory}) + " of " + each;
  if (with_room > 0)
    text += ", " + std::to_string(with_room) + (with_room == 1 ? " has" : " have") + " room now";
  return text;
}

// The card as if each job had been granted all that it holds: its end gives back both.
PoolCard with_all_held(const PoolCard& card) {
  PoolCard all = card;
  for (const Outside& outside : card.foreign) {
    if (!outside.job) continue;
    const auto own = std::find_if(all.holders.begin(), all.holders.end(),
                                  [&](const Holder& holder) { return holder.job == *outside.job; });
    if (own != all.holders.end())
      own->bytes = own->bytes.plus(outside.bytes);
    else
      all.holders.push_back({*outside.job, "", "", outside.bytes});
  }
  std::erase_if(all.foreign, [](const Outside& outside) { return outside.job.has_value(); });
  return all;
}

// The fewest of a card's jobs whose end would make room for the need: the largest, the last of them
// as small as will do. nullopt: even all are not enough, or it is not jobs that are in the way.
std::optional<std::vector<const Holder*>> enough_on(const PoolCard& card, const Need& need,
                                                    const Room& room) {
  if (card.lost || card.drained || card.stale || card.holders.empty()) return std::nullopt;
  std::vector<const Holder*> holders = by_size(card);
  const Used used = used_on(card);
  const Bytes others = used.all().minus(used.granted);
  const bool others_in_the_way =
      (need.whole || card.one_process) && (!card.claimed.empty() || !card.kept.is_zero() ||
                                           others > foreign_allowance(card.card.capacity));
  const Bytes alone = card.card.capacity.minus(others);
  if (others_in_the_way || alone.round_down(kGranule) < need.bytes + need.mover)
    return std::nullopt;
  if (room.what != InTheWay::kTooFull) return holders;
  std::size_t count = 0;
  Bytes still = room.missing;  // what the last member must give
  while (count < holders.size() && holders[count]->bytes < still) still -= holders[count++]->bytes;
  METE_ASSERT(count < holders.size());
  std::size_t last = count;
  while (last + 1 < holders.size() && holders[last + 1]->bytes >= still) ++last;
  // Of equals the lowest number.
  while (last > count && holders[last - 1]->bytes == holders[last]->bytes) --last;
  std::swap(holders[count], holders[last]);
  holders.resize(count + 1);
  return holders;
}

void add_once(std::vector<JobId>& jobs, const std::vector<const Holder*>& holders) {
  for (const Holder* holder : holders)
    if (std::find(jobs.begin(), jobs.end(), holder->job) == jobs.end()) jobs.push_back(holder->job);
}

// A card without room that jobs could make room on.
struct Freed {
  const PoolCard* card;
  std::vector<const Holder*> enough;
  Bytes bytes;
};

std::vector<JobId> whose_end_helps(std::vector<Freed> cards, std::size_t missing_cards) {
  std::sort(cards.begin(), cards.end(), [](const Freed& a, const Freed& b) {
    return std::make_tuple(a.enough.size(), a.bytes, a.card->card.index) <
           std::make_tuple(b.enough.size(), b.bytes, b.card->card.index);
  });
  std::vector<JobId> jobs;
  for (std::size_t i = 0; i < cards.size() && i < missing_cards; ++i)
    add_once(jobs, cards[i].enough);
  for (const Freed& freed : cards) add_once(jobs, freed.enough);
  for (const Freed& freed : cards) add_once(jobs, by_size(*freed.card));
  return jobs;
}

// Whether it would start if nothing were kept for jobs ahead of it.
bool only_kept_is_in_the_way(const Pool& pool, const Needs& needs) {
  std::size_t fits = 0;
  for (const Need& need : needs.cards)
    if (room_on(pool.cards[need.at], need, Kept::kIgnored).what == InTheWay::kNothing) ++fits;
  return fits >= needs.wanted;
}

// Cards that only wait to be undrained.
std::size_t drained_among(const Pool& pool, const Needs& needs) {
  return static_cast<std::size_t>(
      std::count_if(needs.cards.begin(), needs.cards.end(), [&pool](const Need& need) {
        const PoolCard& card = pool.cards[need.at];
        return card.drained && !card.lost && !card.stale;
      }));
}

// `possible`: cards that have room or would have it when jobs end.
Reason reason_of(const Pool& pool, const Needs& needs, std::size_t possible) {
  if (only_kept_is_in_the_way(pool, needs)) return Reason::kPriority;
  if (possible < needs.wanted && possible + drained_among(pool, needs) >= needs.wanted)
    return Reason::kDrained;
  return Reason::kResources;
}

}  // namespace

std::string why_not(const PoolCard& card, const Need& need, const Room& room) {
  const auto because = [&card](const std::string& what) {
    const std::string who = who_is_on(card);
    return who.empty() ? what : what + ", " + who;
  };
  switch (room.what) {
    case InTheWay::kLost:
      return "lost";
    case InTheWay::kDrained:
      return "drained";
    case InTheWay::kStale:
      return "not read lately, so what others hold is not known";
    case InTheWay::kHeldWhole:
      for (const Holder* holder : by_size(card))
        if (holder->whole) return "held whole by " + name_of(*holder);
      break;
    case InTheWay::kOneProcess:
      return because("one process at a time may use it");
    case InTheWay::kNotAlone:
    case InTheWay::kForeign:
      return because("not free");
    case InTheWay::kTooFull:
      return because(to_string(room.free) + " free of the " + to_string(need.bytes + need.mover) +
                     " needed");
    case InTheWay::kWhere:
      return because("--where is not true of it now, with " + to_string(room.free) + " free");
    case InTheWay::kNothing:
      break;
  }
  return "";
}

Wait wait_for(const Pool& pool, const Needs& needs) {
  if (needs.wanted == 0)
    return {Reason::kResources, "this machine to be one of which --where is true", {}};
  std::vector<std::string> whys;
  std::vector<Freed> freed;
  std::vector<PoolCard> held;  // what `freed` points to
  held.reserve(needs.cards.size());
  std::size_t without_room = 0;
  for (const Need& need : needs.cards) {
    const PoolCard& card = pool.cards[need.at];
    const Room room = room_on(card, need);
    if (room.what == InTheWay::kNothing) continue;
    if (++without_room <= kNamedCards)
      whys.push_back("card " + std::to_string(card.card.index) + ": " + why_not(card, need, room));
    const PoolCard& all = held.emplace_back(with_all_held(card));
    auto enough = enough_on(all, need, room);
    if (!enough) continue;
    Bytes bytes;
    for (const Holder* holder : *enough) bytes = bytes.plus(holder->bytes);
    freed.push_back({&all, *std::move(enough), bytes});
  }
  if (without_room > kNamedCards)
    whys.push_back("and " + std::to_string(without_room - kNamedCards) + " more");
  const std::size_t with_room = needs.cards.size() - without_room;
  whys.insert(whys.begin(), for_what(pool, needs, with_room));
  const Reason reason = reason_of(pool, needs, with_room + freed.size());
  return {reason, base::join(whys, "; "),
          whose_end_helps(std::move(freed), needs.wanted - with_room)};
}

}  // namespace mete::core
