// SPDX-License-Identifier: Apache-2.0
// See pass.h. What was refused once in a walk is refused again (there is only ever less room), so
// each kind of job is asked about once, and the walk ends when every kind has been refused.
#include "core/order/pass.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <set>
#include <tuple>

#include "core/order/fair_share.h"
#include "core/place/hold.h"
#include "core/place/spare.h"

namespace mete::core {

namespace {

// A grant counts as if it were held for so long, so that users take turns within one walk.
constexpr std::uint64_t kTurnSeconds = 3'600;
// TERM, grace and KILL after a time limit.
constexpr std::int64_t kGraceMs = 15'000;
constexpr unsigned kLearnedPct = 95;
constexpr std::uint32_t kNoLimit = std::numeric_limits<std::uint32_t>::max();

// The line, one job after another. took() tells it that the last one got something.
class Order {
 public:
  explicit Order(const PassInput& input) : input_(input), usage_(input.usage) {
    find_starving();
    at_ = input.pending->queues().begin();
  }

  struct Next {
    JobId id;
    const Pending::Entry* entry = nullptr;
    const std::string* user = nullptr;
  };
  std::optional<Next> next() {
    if (starving_at_ < starving_.size()) return last_ = starving_[starving_at_++];
    for (;;) {
      if (users_.empty() && !begin_level()) return std::nullopt;
      Turn turn = users_.top();
      users_.pop();
      // Its user was given something since: its turn comes later.
      if (turn.usage != usage_[turn.queue->first.user]) {
        turn.usage = usage_[turn.queue->first.user];
        users_.push(std::move(turn));
        continue;
      }
      const auto entry = turn.entry++;
      const Pending::Jobs& jobs = turn.queue->second;
      const std::string* user = &turn.queue->first.user;
      if (turn.entry != jobs.end()) users_.push(std::move(turn));
      if (entry->second.not_before_ms > input_.now.ms || first_.contains(entry->first)) continue;
      return last_ = Next{entry->first, &entry->second, user};
    }
  }
  void took(std::uint64_t mib) { usage_[*last_.user] += mib * kTurnSeconds; }

 private:
  using Queues = std::map<Pending::Queue, Pending::Jobs>;
  struct Turn {
    std::uint64_t usage = 0;
    Queues::const_iterator queue;
    Pending::Jobs::const_iterator entry;
    bool operator>(const Turn& other) const {
      return std::tie(usage, queue->first.user) > std::tie(other.usage, other.queue->first.user);
    }
  };

  void find_starving() {
    std::map<std::string, Next> oldest;
    const std::int64_t before =
        input_.now.ms - static_cast<std::int64_t>(input_.rules->starve_after_s * 1000);
    for (const auto& [queue, jobs] : input_.pending->queues()) {
      for (const auto& [id, entry] : jobs) {
        if (entry.not_before_ms > input_.now.ms) continue;
        if (entry.submitted_ms > before) break;
        const auto [found, added] = oldest.try_emplace(queue.user, Next{id, &entry, &queue.user});
        if (!added && id < found->second.id) found->second = Next{id, &entry, &queue.user};
        break;
      }
    }
    for (const auto& [user, next] : oldest) {
      starving_.push_back(next);
      first_.insert(next.id);
    }
    std::sort(starving_.begin(), starving_.end(), [](const Next& a, const Next& b) {
      return std::tie(a.entry->submitted_ms, a.id) < std::tie(b.entry->submitted_ms, b.id);
    });
  }

  bool begin_level() {
    const Queues& queues = input_.pending->queues();
    if (at_ == queues.end()) return false;
    for (const std::int32_t level = at_->first.priority;
         at_ != queues.end() && at_->first.priority == level; ++at_)
      users_.push({usage_[at_->first.user], at_, at_->second.begin()});
    return true;
  }

  const PassInput& input_;
  std::map<std::string, std::uint64_t> usage_;
  std::vector<Next> starving_;
  std::size_t starving_at_ = 0;
  std::set<JobId> first_;
  Queues::const_iterator at_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> users_;
  Next last_;
};

std::uint32_t cpus_left(const PassInput& input) {
  if (!input.rules->cpus) return kNoLimit;
  std::uint64_t taken = 0;
  for (const Running& running : input.running) taken += running.cpus;
  return taken >= *input.rules->cpus ? 0 : *input.rules->cpus - static_cast<std::uint32_t>(taken);
}

// A machine with fewer CPUs than a job asks for still runs it, alone.
std::uint32_t cpus_needed(const PassInput& input, const Kind& kind) {
  const std::uint32_t wanted = cpus_of(kind.request, kind.detached);
  return input.rules->cpus ? std::min(wanted, *input.rules->cpus) : wanted;
}

// Where kinds of jobs go in a pool that changes seldom: what was found out about it is kept until
// then.
class Places {
 public:
  void changed() {
    spare_.reset();
    seen_.clear();
  }
  bool may_have(const Pool& pool, const Kind& kind) {
    if (!spare_) spare_.emplace(pool);
    return spare_->may_have(kind.request);
  }
  std::optional<Placement> place(const PassInput& input, const Pool& pool, const Kind& kind) {
    if (!may_have(pool, kind)) return std::nullopt;
    return place_now(input.reservations.empty() ? pool : seen(input, pool, kind), kind.request,
                     input.policy);
  }

 private:
  // Most kinds have the same reservations in their way.
  const Pool& seen(const PassInput& input, const Pool& pool, const Kind& kind) {
    std::vector<std::uint64_t> ids;
    const std::optional<WallTime> ends = ends_if_started(input, kind);
    for (const Reservation& reservation : input.reservations)
      if (in_the_way(reservation, kind.user, input.now, ends)) ids.push_back(reservation.id);
    if (ids.empty()) return pool;
    const auto [known, added] = seen_.try_emplace(std::move(ids));
    if (added) known->second = seen_by(input, pool, kind);
    return known->second;
  }

  std::optional<Spare> spare_;
  std::map<std::vector<std::uint64_t>, Pool> seen_;
};

class Walk {
 public:
  explicit Walk(const PassInput& input) : input_(input), refused_(input.pending->kind_ids()) {
    result_.left = input.pool;
    open_ = input.pool;
    result_.cpus_left = cpus_left(input);
    for (const Running& running : input.running) {
      Held& held = held_[running.user];
      add(held, running.held);
      if (running.array != 0) ++in_array_[running.array];
    }
    running_ = input.running;
  }

  PassResult go() {
    Order order(input_);
    while (refusals_ < input_.pending->kinds()) {
      const std::optional<Order::Next> next = order.next();
      if (!next) break;
      if (refused_[next->entry->kind]) continue;
      if (const std::optional<std::uint64_t> mib = consider(next->id, next->entry->kind))
        order.took(*mib);
    }
    return std::move(result_);
  }

  std::optional<std::size_t> first_to_start(JobId id, std::span<const Kind> kinds) {
    Order order(input_);
    // Once everybody is refused nothing changes any more on the way to it.
    while (refusals_ < input_.pending->kinds()) {
      const std::optional<Order::Next> next = order.next();
      if (!next || next->id == id) break;
      if (refused_[next->entry->kind]) continue;
      if (const std::optional<std::uint64_t> mib = consider(next->id, next->entry->kind))
        order.took(*mib);
    }
    return first_of(kinds);
  }

 private:
  static void add(Held& held, const Held& more) {
    held.cards += more.cards;
    held.bytes = Bytes::from_bytes(held.bytes.count() + more.bytes.count());
    held.running += more.running;
  }

  void refuse(KindId kind) {
    refused_[kind] = true;
    ++refusals_;
  }

  struct Answer {
    std::optional<Placement> placement;  // it may start there
    bool no_room = false;                // or of CPUs too few; otherwise it is over a limit
  };
  Answer answer(const Kind& kind) {
    if (kind.array != 0 && in_array_[kind.array] >= kind.at_once) return {};
    if (cpus_needed(input_, kind) > result_.cpus_left) return {std::nullopt, true};
    std::optional<Placement> placement = place_for(kind);
    if (!placement) return {std::nullopt, true};
    if (over(input_.quota_of(kind.user), held_[kind.user], held_of(placement->cards))) return {};
    return {std::move(placement), false};
  }

  // What it costs for each second, if it may start.
  std::optional<std::uint64_t> consider(JobId id, KindId number) {
    const Kind& kind = input_.pending->kind(number);
    const std::uint32_t cpus = cpus_needed(input_, kind);
    Answer answered = answer(kind);
    if (answered.placement) {
      const Held more = held_of(answered.placement->cards);
      start(id, kind, *std::move(answered.placement), more, cpus);
      return mib_per_second(more.bytes, std::max(1u, cpus));
    }
    if (answered.no_room && !result_.held_for) hold(id, kind, cpus);
    refuse(number);
    return std::nullopt;
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
    std::optional<Placement> placement = left_.place(input_, result_.left, kind);
    if (placement || !held_kind_ || !result_.held_until) return placement;
    // Into what is held for the first in line, if it will be back in time.
    if (!in_open_.may_have(open_, kind)) return std::nullopt;
    const std::optional<WallTime> ends = ends_if_started(input_, kind);
    if (!ends || *ends > *result_.held_until) return std::nullopt;
    return in_open_.place(input_, open_, kind);
  }

  void start(JobId id, const Kind& kind, Placement placement, const Held& more,
             std::uint32_t cpus) {
    const Holder holder{id, kind.user, "", {}, false};
    add_grant(result_.left, holder, placement.cards);
    add_grant(open_, holder, placement.cards);
    left_.changed();
    in_open_.changed();
    add(held_[kind.user], more);
    if (kind.array != 0) ++in_array_[kind.array];
    if (result_.cpus_left != kNoLimit) result_.cpus_left -= cpus;
    running_.push_back({id, kind.user, more, cpus, kind.array, ends_if_started(input_, kind),
                        kind.time_s.has_value()});
    result_.start.push_back({id, std::move(placement.cards)});
  }

  // Nothing is held for a job whose cards are lost or gone, or that is over its quota anyway; then
  // the next one has that right.
  void hold(JobId id, const Kind& kind, std::uint32_t cpus) {
    if (over_quota_anyway(kind)) return;
    const Pool seen = seen_by(input_, result_.left, kind);
    const Pool held = hold_for(seen, kind.request, input_.policy);
    const bool cards = held != seen;
    if (!cards && cpus <= result_.cpus_left) return;
    for (std::size_t i = 0; i < held.cards.size(); ++i)
      result_.left.cards[i].kept = held.cards[i].kept;
    left_.changed();
    if (result_.cpus_left != kNoLimit) result_.cpus_left -= std::min(cpus, result_.cpus_left);
    result_.held_for = id;
    held_kind_ = &kind;
    if (cards) result_.held_until = room_at(input_, open_, kind, running_);
  }

  // Even if every card were empty.
  bool over_quota_anyway(const Kind& kind) {
    const Quota quota = input_.quota_of(kind.user);
    if (quota == Quota{}) return false;
    Pool empty = input_.pool;
    for (PoolCard& card : empty.cards) card.holders.clear();
    const std::optional<Placement> placement = place_now(empty, kind.request, input_.policy);
    const Held more = placement ? held_of(placement->cards) : Held{0, {}, 1};
    return over(quota, held_[kind.user], more).has_value();
  }

  const PassInput& input_;
  PassResult result_;
  Pool open_;  // without what is held for the first in line
  Places left_;
  Places in_open_;
  const Kind* held_kind_ = nullptr;
  std::vector<bool> refused_;
  std::size_t refusals_ = 0;
  std::map<std::string, Held> held_;
  std::map<std::uint64_t, std::uint32_t> in_array_;
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
  for (PoolCard& card : pool.cards)
    std::erase_if(card.holders, [id](const Holder& holder) { return holder.job == id; });
}

Pool seen_by(const PassInput& input, const Pool& pool, const Kind& kind) {
  Pool seen = pool;
  if (!input.reservations.empty())
    keep_reserved(seen, input.reservations, kind.user, input.now, ends_if_started(input, kind));
  return seen;
}

std::optional<WallTime> ends_if_started(const PassInput& input, const Kind& kind) {
  std::optional<std::uint64_t> seconds = kind.time_s;
  if (!seconds) {
    JobSpec like;
    like.user = kind.user;
    like.name = kind.name;
    seconds = input.estimates->ends_by(like, 0, kLearnedPct);
  }
  if (!seconds) return std::nullopt;
  return WallTime{input.now.ms + static_cast<std::int64_t>(*seconds) * 1000 + kGraceMs};
}

std::optional<WallTime> room_at(const PassInput& input, const Pool& pool, const Kind& kind,
                                const std::vector<Running>& running) {
  std::vector<const Running*> ends;
  for (const Running& each : running)
    if (each.ends) ends.push_back(&each);
  std::sort(ends.begin(), ends.end(), [](const Running* a, const Running* b) {
    return std::tie(*a->ends, a->id) < std::tie(*b->ends, b->id);
  });
  Pool later = seen_by(input, pool, kind);
  for (const Running* each : ends) {
    remove_grant(later, each->id);
    if (place_now(later, kind.request, input.policy)) return std::max(*each->ends, input.now);
  }
  return std::nullopt;
}

PassResult walk(const PassInput& input) { return Walk(input).go(); }

std::optional<std::size_t> first_to_start(const PassInput& input, JobId id,
                                          std::span<const Kind> kinds) {
  return Walk(input).first_to_start(id, kinds);
}

std::vector<JobId> in_order(const PassInput& input) {
  Order order(input);
  std::vector<JobId> list;
  while (const std::optional<Order::Next> next = order.next()) list.push_back(next->id);
  return list;
}

std::optional<Blocked> blocked(const PassInput& input, const PassResult& result, const Kind& kind) {
  std::map<std::string, Held> held;
  Held mine;
  std::uint32_t of_array = 0;
  for (const Running& running : input.running) {
    if (running.array != 0 && running.array == kind.array) ++of_array;
    if (running.user != kind.user) continue;
    mine.cards += running.held.cards;
    mine.bytes = Bytes::from_bytes(mine.bytes.count() + running.held.bytes.count());
    mine.running += running.held.running;
  }
  if (kind.array != 0 && of_array >= kind.at_once)
    return Blocked{Blocked::By::kArray,
                   std::to_string(of_array) + " of array " + std::to_string(kind.array) + " run"};
  const Quota quota = input.quota_of(kind.user);
  if (const auto why = over(quota, mine, Held{0, {}, 1})) return Blocked{Blocked::By::kQuota, *why};
  if (cpus_needed(input, kind) > result.cpus_left) return Blocked{Blocked::By::kCpus, ""};
  const std::optional<Placement> placement =
      place_now(seen_by(input, result.left, kind), kind.request, input.policy);
  // Would it fit if there were no quota?
  const std::optional<Placement> open =
      placement ? placement
                : place_now(seen_by(input, input.pool, kind), kind.request, input.policy);
  if (open)
    if (const auto why = over(quota, mine, held_of(open->cards)))
      return Blocked{Blocked::By::kQuota, *why};
  if (!placement) return Blocked{Blocked::By::kRoom, ""};
  return std::nullopt;
}

}  // namespace mete::core
