// SPDX-License-Identifier: Apache-2.0
// See pass.h. Walk::go() takes one job after another from the queue (line.h) and starts it, has
// others parked for it, or holds room for it; parked jobs come back at their place in between.
// There is only ever less room during a pass, so a kind of job that was refused once is refused
// again: each kind is tried once, and the pass ends when every kind has been refused. left_ is what
// later jobs may have, open_ also has what is held for the first.
#include "core/order/pass.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "core/order/fair_share.h"
#include "core/order/line.h"
#include "core/order/preempt.h"
#include "core/order/rest.h"
#include "core/place/hold.h"
#include "core/place/match.h"
#include "core/place/room.h"

namespace mete::core {

namespace {

constexpr unsigned kLearnedPct = 95;

void add(Held& held, const Held& more) {
  held.cards += more.cards;
  held.bytes = held.bytes.plus(more.bytes);
  held.running += more.running;
}

Pool emptied(Pool pool) {
  for (PoolCard& card : pool.cards) {
    card.holders.clear();
    card.claimed.clear();
    card.foreign.clear();
  }
  return pool;
}

// The cards with only what parked jobs have left there: it goes away only when they return.
Pool with_remains(Pool pool) {
  for (PoolCard& card : pool.cards) {
    std::erase_if(card.holders, [](const Holder& holder) { return !holder.parked; });
    card.claimed.clear();
    card.foreign.clear();
  }
  return pool;
}

class Walk {
 public:
  explicit Walk(const PassInput& input)
      : input_(input),
        left_(input),
        open_(input),
        refused_(input.pending->kind_ids()),
        running_(input.running) {
    for (const Running& running : input.running) {
      add(result_.held[running.user], running.held);
      if (running.array != 0) ++result_.in_array[running.array];
      if (running.job != nullptr && may_try_to_return(*input.rules, *running.job, input.now))
        (running.gave_way ? back_last_ : back_).push_back(running.job);
    }
    std::sort(back_.begin(), back_.end(),
              [this](const Job* a, const Job* b) { return comes_before(*a, *b); });
  }

  PassResult go() {
    Line line(input_);
    while (refusals_ < input_.pending->kinds()) {
      const std::optional<Line::Next> next = line.next();
      if (!next) break;
      come_back_before(*next);
      if (const std::optional<std::uint64_t> mib = consider(*next))
        line.took(*mib);
      else
        line.refused();
    }
    while (back_at_ < back_.size()) come_back(*back_[back_at_++]);
    for (const Job* job : back_last_) come_back(*job);
    result_.cpus_left = left_.cpus();
    result_.left = std::move(left_).take_pool();
    result_.cpus_open = open_.cpus();
    result_.open = std::move(open_).take_pool();
    return std::move(result_);
  }

  std::optional<std::size_t> first_to_start(JobId id, std::span<const Kind> kinds) {
    Line line(input_);
    // Nothing changes any more once every kind is refused. The queue is not told of refusals: it
    // must reach this job.
    while (refusals_ < input_.pending->kinds()) {
      const std::optional<Line::Next> next = line.next();
      if (!next) break;
      come_back_before(*next);
      if (next->id == id) break;
      if (refused_[next->kind]) continue;
      if (const std::optional<std::uint64_t> mib = consider(*next)) line.took(*mib);
    }
    return first_of(kinds);
  }

 private:
  void refuse(KindId kind) {
    refused_[kind] = true;
    ++refusals_;
  }

  struct Answer {
    std::optional<Placement> placement;  // the job may start there
    bool no_room = false;                // no room or too few CPUs; otherwise a limit is exceeded
  };
  Answer answer(const Kind& kind) {
    if (kind.array != 0 && result_.in_array[kind.array] >= kind.at_once) return {};
    std::optional<Placement> placement = place_for(kind);
    if (!placement) return {std::nullopt, true};
    if (over(input_.quota_of(kind.user), result_.held[kind.user], held_of(placement->cards)))
      return {};
    return {std::move(placement), false};
  }

  // ---- parked jobs ----

  bool has_waited_too_long(const Job& parked) const {
    return parked.park->since.ms <=
           input_.now.ms - static_cast<std::int64_t>(input_.rules->starve_after_s * 1000);
  }

  bool comes_before(const Job& a, const Job& b) const {
    const auto rank = [this](const Job& job) {
      return std::make_tuple(!has_waited_too_long(job), -job.priority, job.submitted.ms, job.id);
    };
    return rank(a) < rank(b);
  }

  void come_back_before(const Line::Next& next) {
    while (back_at_ < back_.size() &&
           (has_waited_too_long(*back_[back_at_]) ||
            (!next.starving && back_[back_at_]->priority >= next.priority)))
      come_back(*back_[back_at_++]);
  }

  // Jobs that gave way to this one are in the queue again.
  void no_longer_waits(JobId id) {
    for (std::size_t i = 0; i < back_last_.size();) {
      const Job* job = back_last_[i];
      if (job->park->for_job != id) {
        ++i;
        continue;
      }
      back_last_.erase(back_last_.begin() + static_cast<std::ptrdiff_t>(i));
      const auto rest = back_.begin() + static_cast<std::ptrdiff_t>(back_at_);
      const auto comes = [this](const Job* a, const Job* b) { return comes_before(*a, *b); };
      back_.insert(std::upper_bound(rest, back_.end(), job, comes), job);
    }
  }

  std::uint32_t cpus_of_job(const Job& job) const {
    const std::uint32_t wanted = cpus_of(job.spec->request, job.spec->detached.has_value());
    return input_.rules->cpus ? std::min(wanted, *input_.rules->cpus) : wanted;
  }

  // A later reservation does not matter to a returning job; one that has begun does.
  bool has_room(const Pool& pool, const Job& job, WallTime at) const {
    if (input_.reservations.empty()) return may_return(pool, job.id, job.grant);
    Pool seen = pool;
    keep_reserved(seen, input_.reservations, job.spec->user, at, at);
    return may_return(seen, job.id, job.grant);
  }

  void come_back(const Job& job) {
    const std::uint32_t cpus = cpus_of_job(job);
    if (cpus <= left_.cpus() && has_room(left_.pool(), job, input_.now)) {
      const Holder holder{job.id, job.spec->user, "", {}, false, false, true};
      left_.give_back(holder, job.grant, cpus);
      open_.give_back(holder, job.grant, cpus);
      result_.back.push_back(job.id);
      return;
    }
    // No room is held for a job that others' remains are in the way of: those jobs must return
    // first.
    if (result_.held_for || !may_return(remains(), job.id, job.grant)) return;
    // What the job lacks is kept for it, until running jobs are known to make room.
    const std::optional<WallTime> soonest =
        soonest_when(cpus, [&](const Pool& pool, WallTime at) { return has_room(pool, job, at); });
    std::vector<Bytes> kept(input_.pool.cards.size());
    for (std::size_t at = 0; at < job.grant.size(); ++at)
      for (std::size_t i = 0; i < kept.size(); ++i)
        if (input_.pool.cards[i].card.uuid == job.grant[at].uuid)
          kept[i] =
              job.grant[at].bytes.minus(at < job.park->held.size() ? job.park->held[at] : Bytes());
    left_.keep(kept, cpus);
    result_.held_for = job.id;
    result_.held_until = soonest;
  }

  // ---- waiting jobs ----

  // The cost per second of the job, if it may start.
  std::optional<std::uint64_t> consider(const Line::Next& next) {
    const KindId number = next.kind;
    const JobId id = next.id;
    // Fast path: most jobs in a long queue ask for more than is left on any card.
    if (result_.held_for && input_.reservations.empty() && !may_preempt(next) &&
        !open_.may_have(input_.pending->least(number))) {
      refuse(number);
      return std::nullopt;
    }
    const Kind& kind = input_.pending->kind(number);
    Answer answered = answer(kind);
    if (answered.placement) return start(id, kind, *std::move(answered.placement));
    if (answered.no_room && !(may_preempt(next) && preempt(next, kind)) && !result_.held_for)
      hold(id, kind);
    refuse(number);
    return std::nullopt;
  }

  // Fast: some job could be made to give way.
  bool may_preempt(const Line::Next& next) {
    if (!lowest_) {
      lowest_ = std::numeric_limits<std::int32_t>::max();
      for (const Running& running : input_.running) {
        if (running.job == nullptr || !is_parkable(*running.job->spec)) continue;
        const bool grown = has_grown(*running.job);
        if (grown || running.job->spec->preemptible.value_or(false))
          lowest_ = std::min(*lowest_, running.job->priority - (grown ? 1 : 0));
      }
    }
    return *lowest_ < next.priority;
  }

  // True: others are, or are being, parked to make room for the job.
  bool preempt(const Line::Next& next, const Kind& kind) {
    if (over_quota_anyway(kind)) return false;
    const std::optional<MadeRoom> room =
        make_room(input_, left_.pool(), kind, next.priority, result_.park);
    if (!room) return false;
    const std::optional<Soonest> by_itself = soonest_for(kind);
    std::int64_t cost = 0;
    for (const JobId id : room->park)
      for (const Running& running : input_.running)
        if (running.id == id && running.job != nullptr)
          cost = std::max(cost, static_cast<std::int64_t>(park_cost_ms(*running.job)));
    if (!room->park.empty() && by_itself && by_itself->at.ms - input_.now.ms <= 2 * cost)
      return false;
    for (const JobId id : room->park) result_.park.push_back({id, next.id});
    result_.shrink.insert(result_.shrink.end(), room->shrink.begin(), room->shrink.end());
    std::vector<JobId>& for_it = result_.waits_for[next.id];
    for (const std::vector<JobId>* list : {&room->park, &room->shrink, &room->waiting})
      for_it.insert(for_it.end(), list->begin(), list->end());
    std::vector<Bytes> kept(input_.pool.cards.size());
    for (const GrantedCard& card : room->placement.cards)
      for (std::size_t i = 0; i < kept.size(); ++i)
        if (input_.pool.cards[i].card.uuid == card.uuid)
          kept[i] = card.whole ? input_.pool.cards[i].card.capacity : card.bytes;
    left_.keep(kept, cpus_needed(input_, kind));
    if (!result_.held_for) result_.held_for = next.id;
    return true;
  }

  std::optional<std::size_t> first_of(std::span<const Kind> kinds) {
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const std::optional<KindId> known = input_.pending->find(kinds[i]);
      if (known && refused_[*known]) continue;
      if (answer(kinds[i]).placement) return i;
    }
    return std::nullopt;
  }

  std::optional<Placement> place_for(const Kind& kind) {
    const std::uint32_t cpus = cpus_needed(input_, kind);
    std::optional<Placement> placement;
    if (cpus <= left_.cpus()) placement = left_.place(kind);
    if (placement || !result_.held_until || cpus > open_.cpus() || !open_.may_have(kind))
      return placement;
    // The job may use what is held for the first in the queue, if it ends in time.
    const std::optional<WallTime> ends = ends_if_started(input_, kind);
    if (!ends || *ends > *result_.held_until) return std::nullopt;
    return open_.place(kind);
  }

  std::uint64_t start(JobId id, const Kind& kind, Placement placement) {
    const std::uint32_t cpus = cpus_needed(input_, kind);
    const Held more = held_of(placement.cards);
    const Holder holder{id, kind.user, "", {}, false, false, kind.request.parkable};
    left_.give(holder, placement.cards, cpus);
    open_.give(holder, placement.cards, cpus);
    add(result_.held[kind.user], more);
    if (kind.array != 0) ++result_.in_array[kind.array];
    running_.push_back({id, kind.user, more, cpus, kind.array, ends_if_started(input_, kind),
                        kind.time_s.has_value()});
    result_.start.push_back({id, std::move(placement.cards)});
    if (!back_last_.empty()) no_longer_waits(id);
    return mib_per_second(more.bytes, std::max(1u, cpus));
  }

  // No room is held for a job whose cards are lost or gone, or that is over its quota anyway; the
  // next job is the first then. Nor for a job that does not fit beside what parked jobs have left:
  // each would wait for the other.
  void hold(JobId id, const Kind& kind) {
    if (!place_now(remains(), kind.request, input_.policy) || over_quota_anyway(kind)) return;
    std::vector<Bytes> kept(input_.pool.cards.size());
    if (const std::optional<Soonest> soonest = soonest_for(kind)) {
      result_.held_until = soonest->at;
      for (const GrantedCard& card : soonest->placement.cards)
        for (std::size_t i = 0; i < kept.size(); ++i)
          if (input_.pool.cards[i].card.uuid == card.uuid)
            kept[i] = card.whole || asks_for_free(kind.request) ? input_.pool.cards[i].card.capacity
                                                                : card.bytes;
    } else {
      // The time is unknown: hold the cards where the least is missing.
      const Pool held = hold_for(seen_by(input_, open_.pool(), kind), kind.request, input_.policy);
      for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = held.cards[i].kept;
    }
    left_.keep(kept, cpus_needed(input_, kind));
    result_.held_for = id;
  }

  // When and where the job could start first, as running jobs end by their limit or as learned.
  // nullopt: unknown.
  struct Soonest {
    WallTime at;
    Placement placement;
  };
  std::optional<Soonest> soonest_for(const Kind& kind) const {
    const std::optional<WallTime> if_now = ends_if_started(input_, kind);
    std::optional<Placement> placement;
    const std::optional<WallTime> at =
        soonest_when(cpus_needed(input_, kind), [&](const Pool& pool, WallTime then) {
          std::optional<WallTime> until;
          if (if_now) until = WallTime{then.ms + (if_now->ms - input_.now.ms)};
          Pool seen = pool;
          keep_reserved(seen, input_.reservations, kind.user, then, until);
          placement = place_now(seen, kind.request, input_.policy);
          return placement.has_value();
        });
    if (!at) return std::nullopt;
    return Soonest{*at, *std::move(placement)};
  }

  template <class Fits>
  std::optional<WallTime> soonest_when(std::uint32_t needed_cpus, Fits fits) const {
    std::multimap<WallTime, const Running*> ends;
    for (const Running& each : running_)
      if (each.ends) ends.emplace(std::max(*each.ends, input_.now), &each);
    std::set<WallTime> moments;
    for (const auto& [at, each] : ends) moments.insert(at);
    for (const Reservation& reservation : input_.reservations)
      if (reservation.until > input_.now) moments.insert(reservation.until);
    Pool pool = open_.pool();
    std::uint64_t cpus = open_.cpus();
    auto next = ends.begin();
    for (const WallTime at : moments) {
      for (; next != ends.end() && next->first <= at; ++next) {
        remove_grant(pool, next->second->id);
        cpus += next->second->cpus;
      }
      if (cpus >= needed_cpus && fits(pool, at)) return at;
    }
    return std::nullopt;
  }

  const Pool& empty() {
    if (!empty_) empty_ = emptied(input_.pool);
    return *empty_;
  }

  const Pool& remains() {
    if (!remains_) remains_ = with_remains(input_.pool);
    return *remains_;
  }

  // The job would exceed the quota even if every card were empty.
  bool over_quota_anyway(const Kind& kind) {
    const Quota quota = input_.quota_of(kind.user);
    if (quota == Quota{}) return false;
    const std::optional<Placement> placement = place_now(empty(), kind.request, input_.policy);
    const Held more = placement ? held_of(placement->cards) : Held{0, {}, 1};
    return over(quota, result_.held[kind.user], more).has_value();
  }

  const PassInput& input_;
  std::vector<const Job*> back_;       // jobs that want to come back, in order
  std::vector<const Job*> back_last_;  // jobs that come back after the job they gave way to
  std::size_t back_at_ = 0;
  std::optional<std::int32_t> lowest_;  // jobs with a higher priority than this may preempt
  PassResult result_;
  Rest left_;  // for jobs behind the first that waits
  Rest open_;  // left_, with what is held for that first job
  std::optional<Pool> empty_;
  std::optional<Pool> remains_;
  std::vector<bool> refused_;
  std::size_t refusals_ = 0;
  std::vector<Running> running_;
};

}  // namespace

Quota PassInput::quota_of(const std::string& user) const {
  if (quotas.empty()) return {};
  const auto own = quotas.find(user);
  const auto everybody = quotas.find("");
  return with_defaults(own == quotas.end() ? Quota{} : own->second,
                       everybody == quotas.end() ? Quota{} : everybody->second);
}

Held held_of(const std::vector<GrantedCard>& cards) {
  Held held{static_cast<std::uint32_t>(cards.size()), {}, 1};
  for (const GrantedCard& card : cards)
    held.bytes = Bytes::from_bytes(held.bytes.count() + card.bytes.count());
  return held;
}

void remove_grant(Pool& pool, JobId id) {
  for (PoolCard& card : pool.cards) {
    std::erase_if(card.holders, [id](const Holder& holder) { return holder.job == id; });
    std::erase_if(card.foreign, [id](const Outside& outside) { return outside.job == id; });
  }
}

Pool seen_by(const PassInput& input, const Pool& pool, const Kind& kind) {
  Pool seen = pool;
  if (!input.reservations.empty())
    keep_reserved(seen, input.reservations, kind.user, input.now, ends_if_started(input, kind));
  return seen;
}

std::optional<WallTime> ends_if_started(const PassInput& input, const Kind& kind) {
  const std::optional<std::uint64_t> seconds =
      kind.time_s ? *kind.time_s + input.rules->grace_s
                  : input.estimates->ends_by(kind.user, kind.name, 0, kLearnedPct);
  if (!seconds) return std::nullopt;
  return WallTime{input.now.ms + static_cast<std::int64_t>(*seconds) * 1000};
}

PassResult walk(const PassInput& input) { return Walk(input).go(); }

std::optional<std::size_t> first_to_start(const PassInput& input, JobId id,
                                          std::span<const Kind> kinds) {
  return Walk(input).first_to_start(id, kinds);
}

std::vector<JobId> in_order(const PassInput& input) {
  Line line(input);
  std::vector<JobId> list;
  while (const std::optional<Line::Next> next = line.next()) list.push_back(next->id);
  return list;
}

std::optional<Blocked> blocked(const PassInput& input, const PassResult& result, const Kind& kind) {
  const auto held = result.held.find(kind.user);
  const Held mine = held == result.held.end() ? Held{} : held->second;
  const auto of_array = result.in_array.find(kind.array);
  if (kind.array != 0 && of_array != result.in_array.end() && of_array->second >= kind.at_once)
    return Blocked{Blocked::By::kArray, {}, of_array->second};
  const Quota quota = input.quota_of(kind.user);
  if (const auto why = over(quota, mine, Held{0, {}, 1})) return Blocked{Blocked::By::kQuota, why};
  const std::uint32_t cpus = cpus_needed(input, kind);
  const std::optional<WallTime> ends = ends_if_started(input, kind);
  const bool back_in_time = ends && result.held_until && *ends <= *result.held_until;
  if (cpus > (back_in_time ? result.cpus_open : result.cpus_left))
    return Blocked{Blocked::By::kCpus};
  const auto on = [&](const Pool& pool) {
    return place_now(seen_by(input, pool, kind), kind.request, input.policy);
  };
  std::optional<Placement> placement;
  if (cpus <= result.cpus_left) placement = on(result.left);
  if (!placement && back_in_time) placement = on(result.open);
  // Whether it would fit without a quota, now or when there is room.
  std::optional<Placement> open = placement ? placement : on(input.pool);
  if (!open && quota != Quota{}) open = place_now(emptied(input.pool), kind.request, input.policy);
  if (open)
    if (const auto why = over(quota, mine, held_of(open->cards)))
      return Blocked{Blocked::By::kQuota, why};
  if (!placement) return Blocked{Blocked::By::kRoom};
  return std::nullopt;
}

}  // namespace mete::core
