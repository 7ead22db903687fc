// SPDX-License-Identifier: Apache-2.0
// See wait_for.h. One pass over the cards that the request is for notes what is in the way on each
// (wait_on), and which of its jobs would have to end (enough_on). From these it follows which jobs'
// end helps first, and what the reason is. Then come the cards that the request is not for.
#include "core/place/wait_for.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/text.h"

namespace mete::core {

namespace {

// The largest first; the pool's own order means nothing.
std::vector<const Holder*> by_size(const PoolCard& card) {
  std::vector<const Holder*> holders;
  holders.reserve(card.holders.size());
  for (const Holder& holder : card.holders) holders.push_back(&holder);
  std::sort(holders.begin(), holders.end(), [](const Holder* a, const Holder* b) {
    return std::tie(b->bytes, a->job) < std::tie(a->bytes, b->job);
  });
  return holders;
}

void add_shares(const PoolCard& card, CardWait& wait) {
  std::size_t count = card.holders.size();
  for (const Holder* holder : by_size(card))
    if (wait.holders.size() < kWaitShares) wait.holders.push_back(*holder);
  for (const std::vector<Outside>* list : {&card.claimed, &card.foreign})
    for (const Outside& outside : *list)
      if (!outside.bytes.is_zero()) wait.outside.push_back(outside);
  count += wait.outside.size();
  std::stable_sort(wait.outside.begin(), wait.outside.end(),
                   [](const Outside& a, const Outside& b) { return a.bytes > b.bytes; });
  if (wait.outside.size() > kWaitShares) wait.outside.resize(kWaitShares);
  wait.unlisted = static_cast<std::uint32_t>(count - wait.holders.size() - wait.outside.size());
}

CardNeed need_of(const Pool& pool, const Needs& needs, std::size_t with_room) {
  CardNeed need;
  need.cards = static_cast<std::uint32_t>(needs.wanted);
  need.share = GpuRequest{{CardCount::Kind::kOne, 0}, needs.gpu.memory};
  if (std::holds_alternative<WholeCard>(needs.gpu.memory)) need.share = whole_cards(1);
  const Need& first = needs.cards.front();
  if (!first.whole && std::all_of(needs.cards.begin(), needs.cards.end(),
                                  [&first](const Need& n) { return n.bytes == first.bytes; }))
    need.bytes = first.bytes;
  if (needs.named && needs.wanted == 1) need.card = pool.cards[first.at].card.index;
  need.with_room = static_cast<std::uint32_t>(with_room);
  return need;
}

// The card as if each job were granted all that it holds, since its end frees all of it.
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

// The fewest jobs of a card whose end makes room for the need: the largest, the last of them as
// small as possible. nullopt: all of them are not enough, or something else is in the way.
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
  Bytes still = room.missing;  // what the last job must give
  while (count < holders.size() && holders[count]->bytes < still) still -= holders[count++]->bytes;
  METE_ASSERT(count < holders.size());
  std::size_t last = count;
  while (last + 1 < holders.size() && holders[last + 1]->bytes >= still) ++last;
  // The lowest number among equals.
  while (last > count && holders[last - 1]->bytes == holders[last]->bytes) --last;
  std::swap(holders[count], holders[last]);
  holders.resize(count + 1);
  return holders;
}

void add_once(std::vector<JobId>& jobs, const std::vector<const Holder*>& holders) {
  for (const Holder* holder : holders)
    if (std::find(jobs.begin(), jobs.end(), holder->job) == jobs.end()) jobs.push_back(holder->job);
}

// A card without room on which jobs could make room.
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

// Whether the request would be placed if nothing were kept for jobs ahead of it.
bool only_kept_is_in_the_way(const Pool& pool, const Needs& needs) {
  std::size_t fits = 0;
  for (const Need& need : needs.cards)
    if (room_on(pool.cards[need.at], need, Kept::kIgnored).what == InTheWay::kNothing) ++fits;
  return fits >= needs.wanted;
}

std::size_t drained_among(const Pool& pool, const Needs& needs) {
  return static_cast<std::size_t>(
      std::count_if(needs.cards.begin(), needs.cards.end(), [&pool](const Need& need) {
        const PoolCard& card = pool.cards[need.at];
        return card.drained && !card.lost && !card.stale;
      }));
}

// `possible`: cards that have room, or will have when jobs end.
Reason reason_of(const Pool& pool, const Needs& needs, std::size_t possible) {
  if (only_kept_is_in_the_way(pool, needs)) return Reason::kPriority;
  if (possible < needs.wanted && possible + drained_among(pool, needs) >= needs.wanted)
    return Reason::kDrained;
  return Reason::kResources;
}

// Adds cards that the request is not for after those that it is for, up to the limit.
void add_not_asked_for(const Pool& pool, const Request& request, const Needs& needs,
                       std::vector<CardWait>& list) {
  if (needs.cards.size() == pool.cards.size() || list.size() == kWaitCards) return;
  const std::vector<Match> where =
      request.where ? matches(pool, *request.where) : std::vector<Match>();
  for (std::size_t at = 0; at < pool.cards.size() && list.size() < kWaitCards; ++at)
    if (std::none_of(needs.cards.begin(), needs.cards.end(),
                     [at](const Need& need) { return need.at == at; }))
      list.push_back(not_asked_for(pool.cards[at], where.empty() ? Match{} : where[at], request));
}

}  // namespace

CardWait wait_on(const PoolCard& card, const Need& need, const Room& room) {
  CardWait wait;
  wait.index = card.card.index;
  wait.why = room.what;
  wait.whole = need.whole;
  wait.needed = need.whole ? card.card.capacity : need.bytes + need.mover;
  if (!card.lost && !card.stale) wait.free = room.free;
  const bool full = room.what == InTheWay::kTooFull || room.what == InTheWay::kNotAlone;
  if (full && !card.kept.is_zero() &&
      room_on(card, need, Kept::kIgnored).what == InTheWay::kNothing)
    wait.why = InTheWay::kHeldBack;
  wait.kept = card.kept;
  add_shares(card, wait);
  return wait;
}

CardWait not_asked_for(const PoolCard& card, const Match& match, const Request& request) {
  CardWait wait;
  wait.index = card.card.index;
  if (!card.unusable.empty()) {
    wait.why = InTheWay::kUnusable;
    wait.detail = card.unusable;
  } else if (!request.devices.empty()) {
    wait.why = InTheWay::kExcluded;
  } else if (request.gpu_type &&
             base::to_lower(*request.gpu_type) != base::to_lower(card.card.type)) {
    wait.why = InTheWay::kType;
    wait.detail = *request.gpu_type;
  } else {
    wait.why = request.where && !match.ever ? InTheWay::kNeverWhere : InTheWay::kTooSmall;
  }
  return wait;
}

Wait wait_for(const Pool& pool, const Request& request, const Needs& needs) {
  Wait wait;
  wait.room.machine = needs.wanted == 0;
  if (wait.room.machine) return wait;
  std::vector<Freed> freed;
  std::vector<PoolCard> held;  // what `freed` points to
  held.reserve(needs.cards.size());
  std::size_t with_room = 0;
  for (const Need& need : needs.cards) {
    const PoolCard& card = pool.cards[need.at];
    const Room room = room_on(card, need);
    if (room.what == InTheWay::kNothing) {
      ++with_room;
      continue;
    }
    if (wait.room.cards.size() < kWaitCards)
      wait.room.cards.push_back(wait_on(card, need, room));
    else
      ++wait.room.unlisted;
    const PoolCard& all = held.emplace_back(with_all_held(card));
    auto enough = enough_on(all, need, room);
    if (!enough) continue;
    Bytes bytes;
    for (const Holder* holder : *enough) bytes = bytes.plus(holder->bytes);
    freed.push_back({&all, *std::move(enough), bytes});
  }
  wait.room.needs = need_of(pool, needs, with_room);
  add_not_asked_for(pool, request, needs, wait.room.cards);
  wait.reason = reason_of(pool, needs, with_room + freed.size());
  wait.holders = whose_end_helps(std::move(freed), needs.wanted - with_room);
  return wait;
}

}  // namespace mete::core
