// SPDX-License-Identifier: Apache-2.0
// See state.h. First queries by job and by user, then the queue: pass_input() gathers what a pass
// needs, look() does the pass, and wait_of() explains from its result why a job waits. A wait that
// equal jobs share is computed once per kind (wait_of_kind), others per job (wait_of_its_own). At
// the end parts() and from_parts(), for snapshots.
#include "core/job/state.h"

#include <algorithm>

#include "base/assert.h"
#include "core/order/preempt.h"

namespace mete::core {

namespace {

// When --time ends the job at the latest; nullopt: no --time, parked or not started.
std::optional<WallTime> limit_of(const Job& job, const Rules& rules) {
  if (!job.spec->time_s || !job.started || is_away(job)) return std::nullopt;
  return WallTime{job.started->ms + static_cast<std::int64_t>(job.parked_ms) +
                  static_cast<std::int64_t>(*job.spec->time_s + rules.grace_s) * 1000};
}

Holder holder_of(const Job& job, const Rules& rules) {
  return {job.id,
          job.spec->user,
          "",
          {},
          false,
          is_away(job),
          is_parkable(*job.spec),
          limit_of(job, rules)};
}

// What a running job has cost its user so far, in MiB seconds.
std::uint64_t running_cost(const Job& job, WallTime now) {
  if (!job.started || now <= *job.started) return 0;
  const JobSpec& spec = *job.spec;
  const std::uint32_t cpus = std::max(1u, cpus_of(spec.request, spec.detached.has_value()));
  return cost_of(job, static_cast<std::uint64_t>(now.ms - job.started->ms), cpus, now);
}

}  // namespace

Error no_room_now() {
  return Error::exhausted("there is no room now")
      .with_hint("leave --no-wait out to wait in the queue");
}

const Job* State::find(JobId id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

std::vector<const Job*> State::find_all(JobId id) const {
  std::vector<const Job*> list;
  if (id.element) {
    if (const Job* job = find(id); job != nullptr) list.push_back(job);
    return list;
  }
  for (auto at = jobs_.lower_bound(id); at != jobs_.end() && at->first.number == id.number; ++at)
    list.push_back(&at->second);
  return list;
}

const Job* State::first_of(JobId id) const {
  if (id.element) return find(id);
  const auto at = jobs_.lower_bound(id);
  return at == jobs_.end() || at->first.number != id.number ? nullptr : &at->second;
}

bool State::is_over(JobId id, bool any) const {
  if (!id.element)
    if (const Ends* array = history_.array(id.number); array != nullptr)
      return any ? array->known > array->open : array->open == 0;
  const Job* job = find(id);
  return job == nullptr || job->state == JobState::kEnded;
}

const Job* State::find_by_runner(const ProcessRef& runner) const {
  const auto found = runners_.find({runner.pid, runner.start_ticks});
  return found == runners_.end() ? nullptr : &jobs_.at(found->second);
}

std::optional<JobId> State::find_by_key(std::uint32_t uid, const std::string& key) const {
  const auto found = keys_.find({uid, key});
  return found == keys_.end() ? std::nullopt : std::optional(JobId{found->second});
}

std::vector<const Job*> State::ended_after(WallTime time) const {
  std::vector<const Job*> list;
  const std::vector<JobId>& ended = history_.ended();
  for (auto id = ended.rbegin(); id != ended.rend(); ++id) {
    const Job& job = jobs_.at(*id);
    if (*job.ended <= time) break;
    list.push_back(&job);
  }
  return list;
}

void State::set_rules(const Rules& rules) {
  rules_ = rules;
  fair_.set_half_life(rules.half_life_s);
}

Pool State::with_grants(Pool machine) const {
  if (!drained().empty())
    for (PoolCard& card : machine.cards)
      card.drained = card.drained || drained().contains(card.card.uuid);
  for (const JobId id : active_) {
    const Job& job = jobs_.at(id);
    add_grant(machine, holder_of(job, rules_), held_now(job));
  }
  return machine;
}

Held State::held_by(const std::string& user) const {
  Held sum;
  for (const JobId id : active_) {
    const Job& job = jobs_.at(id);
    if (job.spec->user != user) continue;
    const Held held = held_of(job.grant);
    sum.cards += held.cards;
    sum.bytes = Bytes::from_bytes(sum.bytes.count() + held.bytes.count());
    sum.running += held.running;
  }
  return sum;
}

std::uint64_t State::usage_of(const std::string& user, WallTime now) const {
  std::uint64_t usage = fair_.usage(user, now);
  for (const JobId id : active_) {
    const Job& job = jobs_.at(id);
    if (job.spec->user == user) usage += running_cost(job, now);
  }
  return usage;
}

std::vector<const Job*> State::freed_by_cancel(std::span<const JobId> ids) const {
  // The jobs themselves, jobs that end because they waited for one of them to succeed, jobs that
  // waited for these, and arrays of which nothing else is left.
  std::set<JobId> over(ids.begin(), ids.end());
  std::vector<JobId> ending(over.begin(), over.end());
  std::map<std::uint64_t, std::uint64_t> elements;
  std::set<JobId> waited;
  for (std::size_t i = 0; i < ending.size(); ++i) {
    const JobId id = ending[i];
    const JobId whole{id.number};
    if (id.element && ++elements[id.number] == history_.array(id.number)->open &&
        over.insert(whole).second)
      ending.push_back(whole);
    // An array can no longer succeed once one element has not.
    for (const JobId target : {id, whole}) {
      for (const JobId dependent : dependencies_.on(target)) {
        waited.insert(dependent);
        const std::vector<After>& unmet = jobs_.at(dependent).unmet;
        const bool in_vain = std::any_of(unmet.begin(), unmet.end(), [&](const After& after) {
          return after.id == target && after.when == When::kOk;
        });
        if (in_vain && over.insert(dependent).second) ending.push_back(dependent);
      }
    }
  }
  std::vector<const Job*> freed;
  for (const JobId id : waited) {
    const Job& job = jobs_.at(id);
    const auto met = [&over](const After& after) { return over.contains(after.id); };
    if (!over.contains(id) && !job.held && std::all_of(job.unmet.begin(), job.unmet.end(), met))
      freed.push_back(&job);
  }
  return freed;
}

std::uint64_t State::bytes_of(const std::string& user, bool open) const {
  const UserBooks& books = users_.of(user);
  return (open ? books.open : books.known).bytes();
}

std::vector<std::string> State::blobs() const {
  std::set<std::string> hashes;
  const auto add = [&](const JobSpec& spec) {
    if (!spec.command_content.empty()) hashes.insert(spec.command_content);
    if (!spec.detached) return;
    hashes.insert(spec.detached->environment);
    if (!spec.detached->script.empty()) hashes.insert(spec.detached->script);
  };
  for (const auto& [id, job] : jobs_) add(*job.spec);
  for (const auto& [number, sweep] : sweeps_.all()) add(sweep.plan().job);
  return {hashes.begin(), hashes.end()};
}

std::pair<std::optional<WallTime>, bool> State::ends_of(const Job& job, WallTime now) const {
  if (is_away(job)) return {std::nullopt, false};
  // A job that has not started has all its time from now; time parked does not count.
  const WallTime started{job.started.value_or(now).ms + static_cast<std::int64_t>(job.parked_ms)};
  const std::int64_t elapsed = std::max<std::int64_t>(0, now.ms - started.ms) / 1000;
  const auto in = [&](std::uint64_t seconds) {
    return std::max(now, WallTime{started.ms + static_cast<std::int64_t>(seconds) * 1000});
  };
  if (job.spec->time_s) return {in(*job.spec->time_s + rules_.grace_s), true};
  if (const auto learned = estimates_.ends_by(job.spec->user, job.spec->name,
                                              static_cast<std::uint64_t>(elapsed), 95))
    return {in(*learned), false};
  return {std::nullopt, false};
}

// ---- the queue ---------------------------------------------------------------------------------

PassInput State::pass_input(const Moment& moment) const {
  PassInput input;
  input.pool = with_grants(moment.machine);
  input.policy = moment.policy;
  input.now = moment.now;
  input.rules = &rules_;
  input.pending = &pending_;
  input.estimates = &estimates_;
  input.quotas = quotas();
  input.reservations = reservations();
  for (const auto& [queue, jobs] : pending_.queues())
    if (!input.usage.contains(queue.user))
      input.usage[queue.user] = fair_.usage(queue.user, moment.now);
  for (const JobId id : active_) {
    const Job& job = jobs_.at(id);
    const JobSpec& spec = *job.spec;
    const auto [ends, by_limit] = ends_of(job, moment.now);
    Running running{id,
                    spec.user,
                    held_of(job.grant),
                    is_away(job) ? 0 : cpus_of(spec.request, spec.detached.has_value()),
                    spec.array && spec.array->at_once ? id.number : 0,
                    ends,
                    by_limit,
                    &job};
    const auto user = input.usage.find(spec.user);
    if (user != input.usage.end()) user->second += running_cost(job, moment.now);
    if (job.park && job.park->for_job) {
      const Job* other = find(*job.park->for_job);
      running.gave_way = other != nullptr && other->state == JobState::kPending;
    }
    input.running.push_back(std::move(running));
  }
  return input;
}

Sight State::look(const Moment& moment) const {
  Sight sight{pass_input(moment), {}, {}, {}};
  sight.result = walk(sight.input);
  return sight;
}

PassResult State::next_steps(const Moment& moment) const {
  const auto returns = [&](JobId id) {
    return may_try_to_return(rules_, jobs_.at(id), moment.now);
  };
  if (pending_.size() == 0 && std::none_of(active_.begin(), active_.end(), returns)) return {};
  return walk(pass_input(moment));
}

bool State::might_start(const Job& job, const Moment& moment) const {
  if (job.held || !job.unmet.empty()) return false;
  const Kind kind = kind_of(job);
  const std::uint32_t cpus = cpus_of(kind.request, kind.detached);
  if (rules_.cpus && cpus > 0) {
    std::uint64_t taken = 0;
    for (const JobId id : active_) {
      const Job& other = jobs_.at(id);
      if (!is_away(other)) taken += cpus_of(other.spec->request, other.spec->detached.has_value());
    }
    if (taken + std::min(cpus, *rules_.cpus) > *rules_.cpus) return false;
  }
  // Another job may have to give way to it.
  for (const JobId id : active_) {
    const Job& other = jobs_.at(id);
    if (is_parkable(*other.spec) && (other.priority < job.priority || has_grown(other)))
      return true;
  }
  return place_now(with_grants(moment.machine), kind.request, moment.policy).has_value();
}

const SharedWait& State::wait_of(const Job& job, const Moment& moment, Sight& sight) const {
  if (const auto known = sight.own.find(job.id); known != sight.own.end()) return known->second;
  if (!job.held && job.unmet.empty()) {
    const auto queue = pending_.queues().find({job.priority, job.spec->user});
    METE_ASSERT(queue != pending_.queues().end());
    const Pending::Entry& entry = queue->second.at(job.id);
    const bool waits_for_time = entry.not_before_ms > moment.now.ms;
    const bool starts = std::any_of(sight.result.start.begin(), sight.result.start.end(),
                                    [&](const JobGranted& next) { return next.id == job.id; });
    if (!waits_for_time && !starts && sight.result.held_for != job.id &&
        !sight.result.waits_for.contains(job.id)) {
      auto known = sight.known.find(entry.kind);
      if (known == sight.known.end())
        known =
            sight.known.emplace(entry.kind, wait_of_kind(pending_.kind(entry.kind), moment, sight))
                .first;
      return known->second;
    }
  }
  return sight.own.emplace(job.id, wait_of_its_own(job, moment, sight)).first->second;
}

Wait State::wait_of_its_own(const Job& job, const Moment& moment, const Sight& sight) const {
  Wait wait;
  if (job.held) {
    wait.reason = Reason::kHeld;
    wait.release = job.id;
  } else if (!job.unmet.empty()) {
    wait.reason = Reason::kDependency;
    const std::size_t listed = std::min(job.unmet.size(), kWaitCards);
    wait.after.assign(job.unmet.begin(), job.unmet.begin() + static_cast<std::ptrdiff_t>(listed));
    wait.more_after = static_cast<std::uint32_t>(job.unmet.size() - listed);
  } else if (job.spec->begin && *job.spec->begin > moment.now) {
    wait.reason = Reason::kBegin;
    wait.until = job.spec->begin;
  } else if (job.not_before && *job.not_before > moment.now) {
    wait.reason = Reason::kRetry;
    wait.until = job.not_before;
    if (job.put_off) wait.failure = job.put_off->why;
  } else if (const auto room = sight.result.waits_for.find(job.id);
             room != sight.result.waits_for.end()) {
    wait.parking = room->second;
    wait.holders = room->second;
  } else if (sight.result.held_for == job.id) {
    wait = wait_of_kind(kind_of(job), moment, sight);
    // The first job in the queue is not behind itself.
    if (wait.reason == Reason::kPriority) return {};
    wait.later = who_can_be_parked_later(job, sight);
  }
  return wait;
}

// For a job that waits for others to have run long enough to be parked.
std::optional<Wait::Later> State::who_can_be_parked_later(const Job& job,
                                                          const Sight& sight) const {
  PassInput later = sight.input;
  later.now = WallTime{later.now.ms + 86'400'000};
  std::optional<MadeRoom> room = make_room(later, later.pool, kind_of(job), job.priority, {});
  if (!room || room->park.empty()) return std::nullopt;
  WallTime from = sight.input.now;
  for (const JobId id : room->park)
    if (const auto when = parkable_from(rules_, jobs_.at(id))) from = std::max(from, *when);
  return Wait::Later{std::move(room->park), from};
}

// A job that could start, but for the first in the queue.
Wait State::behind(const Job& first, const Sight& sight, Policy policy) const {
  Wait wait;
  wait.reason = Reason::kPriority;
  wait.behind.emplace(Wait::Behind{first.id, first.spec->user, {}});
  if (is_away(first)) {
    wait.behind->room.returns = true;
    return wait;
  }
  Decision decision = place(sight.input.pool, request_of(first), policy);
  if (auto* why = std::get_if<Wait>(&decision)) {
    wait.holders = std::move(why->holders);
    wait.behind->room = std::move(why->room);
  }
  return wait;
}

Wait State::wait_of_kind(const Kind& kind, const Moment& moment, const Sight& sight) const {
  const PassInput& input = sight.input;
  const std::optional<Blocked> by = blocked(input, sight.result, kind);
  Wait wait;
  if (by && by->by == Blocked::By::kQuota) {
    wait.reason = Reason::kQuota;
    wait.quota.emplace(Wait::OfQuota{kind.user, *by->quota});
    return wait;
  }
  if (by && by->by == Blocked::By::kArray) {
    wait.reason = Reason::kQuota;
    wait.array = Wait::OfArray{JobId{kind.array}, by->running, kind.at_once};
    return wait;
  }
  const Pool seen = seen_by(input, input.pool, kind);
  Decision decision = place(seen, kind.request, moment.policy);
  if (const auto* never = std::get_if<Error>(&decision)) {
    // The request was possible at submit: cards have gone since.
    wait.words = never->message + (never->evidence.empty() ? "" : ": " + never->evidence);
    return wait;
  }
  if (auto* room = std::get_if<Wait>(&decision)) {
    if (!input.reservations.empty() && place_now(input.pool, kind.request, moment.policy))
      room->reason = Reason::kReservation;
    return std::move(*room);
  }
  if (by && by->by == Blocked::By::kCpus) {
    wait.cpus = Wait::Cpus{cpus_of(kind.request, kind.detached), rules_.cpus.value_or(0)};
    return wait;
  }
  // With nothing to wait for it could start now: another daemon was quicker, or the disk is full.
  return sight.result.held_for ? behind(jobs_.at(*sight.result.held_for), sight, moment.policy)
                               : wait;
}

// ---- parts -------------------------------------------------------------------------------------

State::Parts State::parts() const {
  Parts parts;
  parts.last_seq = last_seq_;
  parts.last_job = last_job_;
  parts.last_reservation = admin_.last_reservation();
  parts.boot_id = boot_id_;
  // Ended jobs in the order in which they ended, so that the oldest are forgotten first again.
  parts.jobs.reserve(jobs_.size());
  for (const JobId id : history_.ended()) parts.jobs.push_back(jobs_.at(id));
  for (const auto& [id, job] : jobs_)
    if (job.state != JobState::kEnded) parts.jobs.push_back(job);
  parts.lost.assign(lost_.begin(), lost_.end());
  parts.drained = drained();
  parts.quotas = quotas();
  parts.reservations = reservations();
  for (const auto& [number, array] : history_.arrays())
    parts.arrays.push_back({number, array.failed});
  parts.usage = fair_.entries();
  parts.estimates = estimates_.entries();
  parts.score = score_;
  parts.last_sweep = sweeps_.last();
  for (const auto& [number, sweep] : sweeps_.all()) parts.sweeps.push_back(sweep.parts());
  return parts;
}

State State::from_parts(Parts parts, Rules rules) {
  State state(rules);
  state.last_seq_ = parts.last_seq;
  state.last_job_ = parts.last_job;
  state.boot_id_ = std::move(parts.boot_id);
  state.lost_.insert(parts.lost.begin(), parts.lost.end());
  state.admin_.restore(std::move(parts.drained), std::move(parts.quotas),
                       std::move(parts.reservations), parts.last_reservation);
  for (const Parts::ArrayPart& array : parts.arrays)
    state.history_.restore_failed(array.number, array.failed);
  state.fair_.set(parts.usage);
  state.estimates_.set(std::move(parts.estimates));
  state.score_ = parts.score;
  for (const Job& job : parts.jobs)
    if (job.id.element) state.history_.restore_known(job.id);
  for (Job& job : parts.jobs) {
    const JobId id = job.id;
    if (id.element && job.state != JobState::kEnded) state.history_.restore_open(id);
    if (!job.spec->key.empty()) state.keys_[{job.spec->uid, job.spec->key}] = id.number;
    state.users_.hold(job);
    state.enter(state.jobs_.emplace(id, std::move(job)).first->second);
  }
  state.sweeps_.restore(std::move(parts.sweeps), parts.last_sweep);
  // A job that waits for an array with a failed element is doomed again.
  for (const auto& [id, job] : state.jobs_)
    if (job.state == JobState::kPending)
      for (const After& after : job.unmet)
        if (state.in_vain(after)) state.dependencies_.doom(id);
  return state;
}

Ends State::ends_among(JobId id) const {
  if (!id.element)
    if (const Ends* array = history_.array(id.number); array != nullptr) return *array;
  Ends ends;
  for (const Job* job : find_all(id)) {
    if (job->state != JobState::kEnded) ++ends.open;
    if (job->state == JobState::kEnded && job->outcome != Outcome::kOk) ++ends.failed;
  }
  return ends;
}

// A dependency that can no longer be met, or whose job or array ended without meeting it.
bool State::in_vain(const After& after) const {
  const Ends ends = ends_among(after.id);
  return ends.open == 0 || (after.when == When::kOk && ends.failed > 0);
}

}  // namespace mete::core
