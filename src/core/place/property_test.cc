// SPDX-License-Identifier: Apache-2.0
// What holds of placement for every pool and request: RapidCheck makes up pools and requests, and
// shrinks those that fail. Grants must fit, equal inputs give equal cards, and the fast refusal
// refuses nothing that has room. The jobs whose end helps are compared with trying all sets.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/place/hold.h"
#include "core/place/place.h"
#include "core/place/spare.h"

namespace mete::core {
namespace {

using rc::gen::element;
using rc::gen::inRange;

Bytes mib(std::uint64_t count) { return Bytes::from_mib(count); }

// Small numbers, so that requests barely fit or barely do not; odd ones, so that rounding matters.
Bytes any_bytes(std::uint64_t most_mib) {
  return mib(*inRange<std::uint64_t>(1, most_mib)) +
         Bytes::from_bytes(*inRange<std::uint64_t>(0, 3));
}

std::vector<Outside> any_outside(std::uint64_t most_mib) {
  std::vector<Outside> list;
  const auto count = *inRange<std::size_t>(0, 3);
  list.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    list.push_back({"process " + std::to_string(*inRange(1, 99)), any_bytes(most_mib)});
  return list;
}

bool rarely() { return *inRange(0, 8) == 7; }

// Our own grants are within the card; claims and foreign memory may be anything.
PoolCard any_card(std::uint32_t index) {
  PoolCard card;
  card.card = {index, "GPU-" + std::to_string(index), *element<std::string>("A", "B"),
               any_bytes(8192) + mib(64)};
  card.lost = rarely();
  card.drained = rarely();
  card.stale = rarely();
  card.one_process = rarely();
  if (rarely()) card.unusable = "split into MIG slices";
  if (*inRange(0, 2) == 0) card.context = any_bytes(300);
  if (rarely()) {
    card.holders = {{{1000 + index}, "alice", "alone", card.card.capacity, true}};
    return card;
  }
  Bytes free = card.card.capacity;
  const int jobs = *inRange(0, 5);
  for (int i = 0; i < jobs; ++i) {
    // Coarse, so that some are equal.
    const Bytes bytes = any_bytes(4096).round_down(mib(256));
    if (bytes.is_zero() || bytes > free) continue;
    free -= bytes;
    card.holders.push_back(
        {{static_cast<std::uint64_t>(*inRange(1, 30))}, "bob", "x", bytes, false});
  }
  if (rarely()) card.claimed = any_outside(4096);
  if (rarely()) card.foreign = any_outside(4096);
  return card;
}

Pool any_pool() {
  Pool pool;
  const auto count = *inRange<std::uint32_t>(0, 6);
  for (std::uint32_t i = 0; i < count; ++i) pool.cards.push_back(any_card(i));
  return pool;
}

Request any_request() {
  Request request;
  const std::string share = *element<std::string>("64M", "100M", "1G", "2G", "3001M", "7G", "20%",
                                                  "0.5", "0.333", "100%");
  const std::string count = *element<std::string>("", "", "1x", "2x", "3x", "allx");
  const std::string whole = *element<std::string>("0", "1", "2", "all");
  request.gpu = *parse_gpu(*inRange(0, 4) == 0 ? whole : count + share);
  if (rarely()) request.gpu_type = "a";
  if (rarely()) request.devices = {std::to_string(*inRange(0, 6)), std::to_string(*inRange(0, 6))};
  if (rarely()) request.procs = *inRange<std::uint32_t>(1, 9);
  return request;
}

Policy any_policy() { return *element(Policy::kFirstFit, Policy::kBestFit, Policy::kSpread); }

const PoolCard& card_of(const Pool& pool, const GrantedCard& granted) {
  return *std::find_if(pool.cards.begin(), pool.cards.end(),
                       [&](const PoolCard& card) { return card.card.uuid == granted.uuid; });
}

Bytes granted_on(const PoolCard& card) {
  Bytes sum;
  for (const Holder& holder : card.holders) sum += holder.bytes;
  return sum;
}

RC_GTEST_PROP(PlaceProperty, NeverMoreThanIsGrantableNorTwiceOnOneCard, ()) {
  Pool pool = any_pool();
  const Decision decision = place(pool, any_request(), any_policy());
  RC_PRE(std::holds_alternative<Placement>(decision));
  const auto* placement = std::get_if<Placement>(&decision);
  std::set<std::string> seen;
  for (const GrantedCard& granted : placement->cards) {
    RC_ASSERT(seen.insert(granted.uuid).second);
    RC_ASSERT(granted.bytes <= card_of(pool, granted).grantable());
    RC_ASSERT(granted.bytes >= kGranule);
    RC_ASSERT(granted.bytes.count() % kGranule.count() == 0);
    RC_ASSERT(!granted.whole || card_of(pool, granted).holders.empty());
  }
  add_grant(pool, {{99}, "carol", "new", Bytes(), false}, placement->cards);
  for (const PoolCard& card : pool.cards) RC_ASSERT(granted_on(card) <= card.card.capacity);
  for (const GrantedCard& granted : placement->cards)
    RC_ASSERT(!granted.whole || card_of(pool, granted).grantable().is_zero());
}

RC_GTEST_PROP(PlaceProperty, TheSameInTheSameOutInWhateverOrderHoldersAreListed, ()) {
  const Pool pool = any_pool();
  const Request request = any_request();
  const Policy policy = any_policy();
  Pool backwards = pool;
  for (PoolCard& card : backwards.cards) {
    std::reverse(card.holders.begin(), card.holders.end());
    std::reverse(card.claimed.begin(), card.claimed.end());
    std::reverse(card.foreign.begin(), card.foreign.end());
  }
  RC_ASSERT(place(pool, request, policy) == place(pool, request, policy));
  RC_ASSERT(place(pool, request, policy) == place(backwards, request, policy));
}

RC_GTEST_PROP(PlaceProperty, WhatFitsTheEmptyCardsIsNeverCalledNever, ()) {
  const Pool pool = any_pool();
  const Request request = any_request();
  const Policy policy = any_policy();
  Pool empty;
  for (const PoolCard& card : pool.cards) {
    PoolCard alone;
    alone.card = card.card;
    alone.unusable = card.unusable;
    alone.one_process = card.one_process;
    alone.context = card.context;
    empty.cards.push_back(alone);
  }
  const Decision at_best = place(empty, request, policy);
  RC_ASSERT(!std::holds_alternative<Wait>(at_best));
  const Decision now = place(pool, request, policy);
  if (std::holds_alternative<Error>(at_best))
    RC_ASSERT(now == at_best);
  else
    RC_ASSERT(!std::holds_alternative<Error>(now));
}

RC_GTEST_PROP(PlaceProperty, TheQuickNoRefusesNothingThatHasRoom, ()) {
  const Pool pool = any_pool();
  Request request = any_request();
  if (rarely() && !request.devices.empty()) request.gpu.reset();
  if (rarely()) request.or_cpu = true;
  const bool has_room = place_now(pool, request, any_policy()).has_value();
  RC_CLASSIFY(has_room, "has room");
  RC_ASSERT(!has_room || Spare(pool).may_have(request));
}

RC_GTEST_PROP(PlaceProperty, PoliciesDifferOnlyInTheCards, ()) {
  const Pool pool = any_pool();
  const Request request = any_request();
  const Decision first = place(pool, request, Policy::kFirstFit);
  for (const Policy policy : {Policy::kBestFit, Policy::kSpread}) {
    const Decision other = place(pool, request, policy);
    RC_ASSERT(first.index() == other.index());
    if (const auto* placement = std::get_if<Placement>(&first))
      RC_ASSERT(placement->cards.size() == std::get<Placement>(other).cards.size());
    else
      RC_ASSERT(first == other);
  }
}

RC_GTEST_PROP(PlaceProperty, WithoutTheReasonsItIsTheSameDecision, ()) {
  const Pool pool = any_pool();
  const Request request = any_request();
  const Decision decision = place(pool, request, Policy::kBestFit);
  const std::optional<Placement> now = place_now(pool, request, Policy::kBestFit);
  RC_ASSERT(now.has_value() == std::holds_alternative<Placement>(decision));
  if (now) RC_ASSERT(*now == std::get<Placement>(decision));
}

Pool without(Pool pool, const std::vector<JobId>& ended) {
  for (PoolCard& card : pool.cards)
    std::erase_if(card.holders, [&](const Holder& holder) {
      return std::find(ended.begin(), ended.end(), holder.job) != ended.end();
    });
  return pool;
}

bool fits(const Pool& pool, const Request& request) {
  return std::holds_alternative<Placement>(place(pool, request, Policy::kFirstFit));
}

// The fewest jobs whose end makes the request fit, by trying all sets; 0: none does.
std::size_t fewest(const Pool& pool, const Request& request) {
  std::set<JobId> all;
  for (const PoolCard& card : pool.cards)
    for (const Holder& holder : card.holders) all.insert(holder.job);
  const std::vector<JobId> jobs(all.begin(), all.end());
  std::size_t best = 0;
  for (std::size_t mask = 1; mask < (std::size_t{1} << jobs.size()); ++mask) {
    std::vector<JobId> ended;
    for (std::size_t i = 0; i < jobs.size(); ++i)
      if ((mask >> i & 1) != 0) ended.push_back(jobs[i]);
    if ((best == 0 || ended.size() < best) && fits(without(pool, ended), request))
      best = ended.size();
  }
  return best;
}

// Two cards that are nearly full. Each job is on one of them, since Wait.holders does not count
// what a job holds elsewhere.
Pool crowded_pool() {
  Pool pool;
  std::uint64_t id = 1;
  for (std::uint32_t index = 0; index < 2; ++index) {
    PoolCard card = any_card(index);
    card.card.capacity = mib(7300);
    card.holders.clear();
    Bytes free = card.card.capacity;
    while (free > mib(100) && card.holders.size() < 4) {
      const Bytes bytes =
          std::min(free.round_down(kGranule), mib(2 * *inRange<std::uint64_t>(300, 1500)));
      card.holders.push_back({{id++}, "bob", "x", bytes, false});
      free -= bytes;
    }
    pool.cards.push_back(card);
  }
  return pool;
}

RC_GTEST_PROP(PlaceProperty, TheFirstHoldersAreTheFewestThatAreEnoughForOneCard, ()) {
  const Pool pool = crowded_pool();
  Request request = any_request();
  request.gpu->cards = {CardCount::Kind::kOne, 0};
  request.devices.clear();
  const Decision decision = place(pool, request, Policy::kFirstFit);
  RC_PRE(std::holds_alternative<Wait>(decision));
  const auto* wait = std::get_if<Wait>(&decision);
  const std::size_t count = fewest(pool, request);
  RC_ASSERT((count == 0) == wait->holders.empty());
  RC_ASSERT(count <= wait->holders.size());
  const auto end = wait->holders.begin() + static_cast<std::ptrdiff_t>(count);
  if (count != 0) RC_ASSERT(fits(without(pool, {wait->holders.begin(), end}), request));
}

// How much must end before a share of `bytes` (zero: the whole card) fits on `cards` of the cards
// that are large enough.
std::uint64_t missing(const Pool& pool, Bytes bytes, std::size_t cards) {
  std::vector<std::uint64_t> each;
  for (const PoolCard& card : pool.cards) {
    const Bytes used = granted_on(card);
    const Bytes room = card.card.capacity.minus(used);
    if (card.card.capacity < bytes) continue;
    each.push_back(bytes.is_zero() ? used.count() : bytes.minus(room).count());
  }
  if (each.size() < cards) return UINT64_MAX;
  std::sort(each.begin(), each.end());
  return std::accumulate(each.begin(), each.begin() + static_cast<std::ptrdiff_t>(cards),
                         std::uint64_t{0});
}

RC_GTEST_PROP(PlaceProperty, ThoseBehindNeverMoveTheFirstInLineFurtherAway, ()) {
  Pool pool = any_pool();
  for (PoolCard& card : pool.cards) {
    PoolCard plain;
    plain.card = card.card;
    for (const Holder& holder : card.holders)
      if (!holder.whole) plain.holders.push_back(holder);
    card = plain;
  }
  const Bytes share = mib(2 * *inRange<std::uint64_t>(0, 4096));
  const auto cards = *inRange<std::uint32_t>(1, 4);
  Request first;
  first.gpu = whole_cards(cards);
  if (!share.is_zero()) first.gpu->memory = Size{share};
  const Policy policy = any_policy();
  for (int i = 0; i < 6; ++i) {
    const std::uint64_t before = missing(pool, share, cards);
    const Decision behind = place(hold_for(pool, first, policy), any_request(), any_policy());
    if (const auto* placement = std::get_if<Placement>(&behind))
      add_grant(pool, {{50}, "carol", "behind", Bytes(), false}, placement->cards);
    RC_ASSERT(missing(pool, share, cards) <= before);
  }
}

}  // namespace
}  // namespace mete::core
