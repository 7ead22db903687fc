// SPDX-License-Identifier: Apache-2.0
// See match.h.
#include "core/place/match.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "core/where/card_facts.h"

namespace mete::core {

namespace {

Bytes memory_of(const PoolCard& card) {
  return card.card.total.is_zero() ? card.card.capacity : card.card.total;
}

std::uint64_t jobs_on(const Pool& pool) {
  std::set<JobId> jobs;
  for (const PoolCard& card : pool.cards)
    for (const Holder& holder : card.holders) jobs.insert(holder.job);
  return jobs.size();
}

}  // namespace

std::vector<Match> matches(const Pool& pool, const Query& where) {
  const std::uint64_t jobs = jobs_on(pool);
  std::vector<Match> list;
  list.reserve(pool.cards.size());
  for (const PoolCard& card : pool.cards) {
    const NodeFacts facts = facts_of(CardFacts{card.card.type, memory_of(card), card.grantable()},
                                     pool.cards.size(), jobs);
    const std::array varying{Varying{"gpu.free", 0, card.card.capacity.count()}};
    list.push_back({where.matches(facts), where.may_match(facts, varying)});
  }
  return list;
}

Match machine_matches(const Pool& pool, const Query& where) {
  if (pool.cards.empty()) {
    const NodeFacts facts = facts_of(std::nullopt, 0, 0);
    return {where.matches(facts), where.may_match(facts, {})};
  }
  Match any;
  for (const Match& match : matches(pool, where)) {
    any.now = any.now || match.now;
    any.ever = any.ever || match.ever;
  }
  return any;
}

Error never_matches(const Pool& pool, const Query& where) {
  std::map<std::pair<std::string, Bytes>, std::size_t> kinds;
  for (const PoolCard& card : pool.cards) ++kinds[{card.card.type, memory_of(card)}];
  std::string here = "this machine: gpu.count " + std::to_string(pool.cards.size());
  for (const auto& [kind, count] : kinds)
    here += "; " + std::to_string(count) + (count == 1 ? " card" : " cards") + " of gpu.type " +
            base::printable(kind.first) + " and gpu.memory " + to_string(kind.second);
  return Error::infeasible("--where " + base::quote(where.text()) + " is never true here")
      .with_evidence(here)
      .with_hint("attributes are gpu.type, gpu.memory, gpu.count and gpu.free: mete where " +
                 base::quote("attribute:gpu.memory >= 16G"));
}

bool asks_for_free(const Request& request) {
  return request.where && request.where->mentions("gpu.free");
}

}  // namespace mete::core
