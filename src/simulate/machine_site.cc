// SPDX-License-Identifier: Apache-2.0
// See machine_site.h.
#include "simulate/machine_site.h"

#include <algorithm>

#include "core/place/need.h"

namespace mete::simulate {

namespace {

constexpr std::size_t kMostTypical = 64;  // kinds of requests, the most frequent ones

double part(Bytes some, Bytes all) {
  return all.is_zero() ? 0 : static_cast<double>(some.count()) / static_cast<double>(all.count());
}

}  // namespace

MachineSite::MachineSite(core::Pool machine, core::Policy policy, const std::vector<TimedJob>& jobs)
    : machine_(std::move(machine)), policy_(policy) {
  for (const core::PoolCard& card : machine_.cards) capacity_ += card.card.capacity;
  std::map<core::Request, std::size_t> counts;
  for (const TimedJob& job : jobs) ++counts[job.request];
  std::vector<std::pair<std::size_t, const core::Request*>> common;
  for (const auto& [request, count] : counts) common.emplace_back(count, &request);
  std::stable_sort(common.begin(), common.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  common.resize(std::min(common.size(), kMostTypical));
  double all = 0;
  for (const auto& [count, request] : common) {
    const Result<core::Needs> needs = core::needs_of(machine_, *request);
    if (!needs || needs->wanted == 0) continue;
    Typical typical;
    typical.frequency = static_cast<double>(count);
    typical.wanted = needs->wanted;
    typical.needs.resize(machine_.cards.size());
    for (const core::Need& need : needs->cards) {
      typical.needs[need.at] = need.whole ? machine_.cards[need.at].card.capacity : need.bytes;
      typical.whole = need.whole;
    }
    all += typical.frequency;
    typical_.push_back(std::move(typical));
  }
  for (Typical& typical : typical_) typical.frequency /= all;
}

Result<std::vector<core::Happened>> MachineSite::submit(const core::State& state,
                                                        const core::Submit& submit, std::size_t,
                                                        WallTime now) {
  return state.decide(submit, moment(now));
}

std::vector<core::JobGranted> MachineSite::grants(const core::State& state, WallTime now) {
  return state.grants(moment(now));
}

void MachineSite::locate(const core::JobGranted& granted, Life& life) const {
  Life::Part& part = life.parts.emplace_back();
  for (const core::GrantedCard& card : granted.cards) part.cards.push_back(card.index);
}

// What is idle and useless for such a request: cards with less than it needs, or all of them if too
// few have enough.
double MachineSite::lost(const core::Pool& pool, const std::vector<Bytes>& free,
                         const Typical& typical) const {
  std::size_t with = 0;
  Bytes of_no_use;
  Bytes idle;
  for (std::size_t i = 0; i < free.size(); ++i) {
    idle += free[i];
    const std::optional<Bytes>& need = typical.needs[i];
    const bool alone = !typical.whole || pool.cards[i].holders.empty();
    if (need && free[i] >= *need && alone)
      ++with;
    else
      of_no_use += free[i];
  }
  return part(with < typical.wanted ? idle : of_no_use, capacity_);
}

Site::Use MachineSite::use(const core::State& state) {
  const core::Pool pool = state.with_grants(machine_);
  std::vector<Bytes> free;
  Bytes granted;
  for (const core::PoolCard& card : pool.cards) {
    free.push_back(card.grantable());
    for (const core::Holder& holder : card.holders) granted += holder.bytes;
  }
  Use use{100 * part(granted, capacity_), 0};
  for (const Typical& typical : typical_)
    use.frag_pct += 100 * typical.frequency * lost(pool, free, typical);
  return use;
}

}  // namespace mete::simulate
