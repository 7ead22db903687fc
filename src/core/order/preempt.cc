// SPDX-License-Identifier: Apache-2.0
// See preempt.h. Search sorts the running jobs into those that are leaving, those with unused
// growth and candidates for parking. It then tries, on a copy of the pool, ever costlier changes
// until the waiting job fits: wait for the leaving ones, take back growth, park one job, a pair,
// and at last all candidates less those that can be left out.
#include "core/order/preempt.h"

#include <algorithm>
#include <tuple>

#include "core/place/room.h"

namespace mete::core {

namespace {

constexpr std::uint64_t kWorthIt = 5;
// All pairs are tried for up to this many candidates.
constexpr std::size_t kMaxPairs = 48;

Bytes bytes_of(const Job& job) { return held_of(job.grant).bytes; }

// What a job is expected to leave on a card when it is parked: what it left the last time,
// otherwise a context for each of its processes.
Bytes stays_on(const PoolCard& card, const Job& job, std::size_t at) {
  if (at < job.stayed.size()) return job.stayed[at];
  const std::uint32_t procs = std::max(1u, job.spec->request.procs);
  return card.context.checked_mul(procs).value_or(card.context);
}

void park_in(Pool& pool, const Job& job) {
  for (PoolCard& card : pool.cards)
    for (Holder& holder : card.holders) {
      if (holder.job != job.id) continue;
      for (std::size_t at = 0; at < job.grant.size(); ++at)
        if (job.grant[at].uuid == card.card.uuid)
          holder.bytes = std::min(holder.bytes, stays_on(card, job, at));
      holder.whole = false;
      holder.parked = true;
    }
}

void shrink_in(Pool& pool, const Job& job) {
  for (PoolCard& card : pool.cards)
    for (Holder& holder : card.holders)
      for (const GrantedCard& granted : job.grant)
        if (holder.job == job.id && granted.uuid == card.card.uuid)
          holder.bytes = std::min(holder.bytes, granted.least);
}

bool is_on(const Placement& placement, const Job& job) {
  return std::any_of(job.grant.begin(), job.grant.end(), [&](const GrantedCard& granted) {
    return std::any_of(placement.cards.begin(), placement.cards.end(),
                       [&](const GrantedCard& card) { return card.uuid == granted.uuid; });
  });
}

class Search {
 public:
  Search(const PassInput& input, const Pool& pool, const Kind& kind, std::int32_t priority,
         std::span<const PassResult::ToPark> asked)
      : input_(input), kind_(kind), base_(pool) {
    const auto is_asked = [asked](const Job& job) {
      return std::any_of(asked.begin(), asked.end(),
                         [&](const PassResult::ToPark& each) { return each.id == job.id; });
    };
    for (const Running& running : input.running) {
      if (running.job == nullptr) continue;
      const Job& job = *running.job;
      if (on_its_way(job) || is_asked(job)) {
        leaving_.push_back(&job);
        park_in(base_, job);
        continue;
      }
      if (job.state == JobState::kRunning && job.growth != Growth::kTight && has_grown(job))
        slack_.push_back(&job);
      if (may_be_parked(job, priority)) candidates_.push_back(&job);
    }
    std::sort(candidates_.begin(), candidates_.end(), [](const Job* a, const Job* b) {
      return std::make_tuple(a->priority, bytes_of(*a), a->id) <
             std::make_tuple(b->priority, bytes_of(*b), b->id);
    });
  }

  std::optional<MadeRoom> find() {
    if (leaving_.empty() && slack_.empty() && candidates_.empty()) return std::nullopt;
    if (!leaving_.empty())
      if (auto placement = place_in(base_)) return made({}, *std::move(placement));
    // Taking back unused growth costs nothing.
    for (const Job* job : slack_) shrink_in(base_, *job);
    if (!slack_.empty())
      if (auto placement = place_in(base_)) return made({}, *std::move(placement));
    if (candidates_.empty() || !place_without(candidates_)) return std::nullopt;
    for (const Job* job : candidates_)
      if (auto placement = place_without({job})) return made({job}, *std::move(placement));
    if (candidates_.size() <= kMaxPairs)
      if (auto pair = best_pair()) return pair;
    return fewest_by_leaving_out();
  }

 private:
  bool on_its_way(const Job& job) const {
    if (job.state != JobState::kParking || !job.park) return false;
    const auto patience = static_cast<std::int64_t>(input_.rules->park_patience_s * 1000);
    return input_.now.ms - job.park->since.ms < patience;
  }

  bool may_be_parked(const Job& job, std::int32_t priority) const {
    const bool grown = has_grown(job) && !job.spec->shed && job.priority <= priority;
    if (!grown && (job.priority >= priority || !job.spec->preemptible.value_or(false)))
      return false;
    const std::optional<WallTime> from = parkable_from(*input_.rules, job);
    return from && *from <= input_.now;
  }

  std::optional<Placement> place_in(const Pool& pool) const {
    return place_now(seen_by(input_, pool, kind_), kind_.request, input_.policy);
  }

  std::optional<Placement> place_without(const std::vector<const Job*>& jobs) const {
    Pool pool = base_;
    for (const Job* job : jobs) park_in(pool, *job);
    return place_in(pool);
  }

  std::optional<MadeRoom> best_pair() const {
    using Cost = std::tuple<std::int32_t, Bytes, JobId, JobId>;
    std::optional<std::pair<Cost, MadeRoom>> best;
    for (std::size_t i = 0; i < candidates_.size(); ++i)
      for (std::size_t k = i + 1; k < candidates_.size(); ++k) {
        const Job &a = *candidates_[i], &b = *candidates_[k];
        const Cost cost{std::max(a.priority, b.priority), bytes_of(a).plus(bytes_of(b)),
                        std::min(a.id, b.id), std::max(a.id, b.id)};
        if (best && best->first <= cost) continue;
        if (auto placement = place_without({&a, &b}))
          best = {cost, made({&a, &b}, *std::move(placement))};
      }
    return best ? std::optional(std::move(best->second)) : std::nullopt;
  }

  // A set from which no job can be left out; jobs with the highest priority and the most to move
  // are left out first.
  MadeRoom fewest_by_leaving_out() const {
    std::vector<const Job*> jobs = candidates_;
    for (std::size_t i = jobs.size(); i-- > 0;) {
      std::vector<const Job*> fewer = jobs;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (place_without(fewer)) jobs = std::move(fewer);
    }
    return made(jobs, *place_without(jobs));
  }

  MadeRoom made(const std::vector<const Job*>& jobs, Placement placement) const {
    MadeRoom room;
    for (const Job* job : jobs) room.park.push_back(job->id);
    for (const Job* job : leaving_)
      if (is_on(placement, *job)) room.waiting.push_back(job->id);
    for (const Job* job : slack_)
      if (is_on(placement, *job))
        (job->growth == Growth::kAsked ? room.waiting : room.shrink).push_back(job->id);
    room.placement = std::move(placement);
    return room;
  }

  const PassInput& input_;
  const Kind& kind_;
  Pool base_;
  std::vector<const Job*> leaving_;     // being parked
  std::vector<const Job*> slack_;       // may have grown by more than they use
  std::vector<const Job*> candidates_;  // lowest priority first, then the cheapest
};

}  // namespace

std::uint64_t park_cost_ms(const Job& job) { return move_ms(bytes_of(job)); }

std::optional<WallTime> parkable_from(const Rules& rules, const Job& job) {
  if (job.state != JobState::kRunning || !job.started || !is_parkable(*job.spec))
    return std::nullopt;
  if (job.unparkable && job.unparkable->standing) return std::nullopt;
  const WallTime since = job.resumed.value_or(*job.started);
  const auto run_ms = static_cast<std::int64_t>(
      std::max(rules.park_min_run_s * 1000, 2 * kWorthIt * park_cost_ms(job)));
  WallTime from{since.ms + run_ms};
  if (job.unparkable)
    from = std::max(from, WallTime{job.unparkable->at.ms +
                                   static_cast<std::int64_t>(rules.park_retry_s * 1000)});
  return from;
}

std::optional<WallTime> tries_again(const Rules& rules, const Job& job) {
  if (job.state != JobState::kParked || !job.park->wants_back || job.park->why.empty() ||
      job.park->lost)
    return std::nullopt;
  return WallTime{job.park->since.ms + static_cast<std::int64_t>(rules.park_retry_s * 1000)};
}

bool may_try_to_return(const Rules& rules, const Job& job, WallTime now) {
  if (job.state != JobState::kParked || !job.park->wants_back || job.park->lost) return false;
  const std::optional<WallTime> again = tries_again(rules, job);
  return !again || *again <= now || job.park->since > now;  // the clock was set back
}

std::optional<MadeRoom> make_room(const PassInput& input, const Pool& pool, const Kind& kind,
                                  std::int32_t priority,
                                  std::span<const PassResult::ToPark> asked) {
  if (kind.no_preempt) return std::nullopt;
  return Search(input, pool, kind, priority, asked).find();
}

}  // namespace mete::core
