// SPDX-License-Identifier: Apache-2.0
// See decide.h. park_one() and unpark_one() decide on a user's request for one job; of_each()
// applies them to an array. A runner's ParkReport is compared with the job's state: it confirms an
// order, refuses it, or is late. EventApplier::on() at the end applies the events. order/preempt.h
// chooses which job is parked for which, launch/parking.h carries the order out.
#include <algorithm>

#include "base/assert.h"
#include "core/job/apply.h"
#include "core/job/decide.h"
#include "core/order/preempt.h"
#include "core/place/room.h"
#include "core/place/wait_for.h"

namespace mete::core {

namespace {

// A growing share grows by this part of its range, so that it does not ask for every block.
constexpr std::uint64_t kGrowthSteps = 8;
constexpr Bytes kLeastGrowth = Bytes::from_mib(256);

std::string name_of(const Job& job) { return "job " + to_string(job.id); }

std::string by_name(const Job& job) { return to_string(job.id); }

Error not_while(const Job& job, const std::string& what) {
  return Error::busy(name_of(job) + " cannot be " + what + " now")
      .with_evidence("it is " + std::string(to_string(job.state)))
      .with_hint("mete show " + by_name(job) + " says how it stands");
}

Error has_ended(const Job& job) {
  return Error::invalid(name_of(job) + " has ended")
      .with_evidence("outcome " + std::string(to_string(*job.outcome)) + ", at " +
                     to_string(*job.ended));
}

// For an array: the events of the jobs for which it works; an error if there is none.
template <class One>
Result<std::vector<Happened>> of_each(const Result<std::vector<const Job*>>& jobs, One one) {
  if (!jobs) return jobs.error();
  std::vector<Happened> happened;
  std::optional<Error> error;
  bool can = false;
  for (const Job* job : *jobs) {
    Result<std::optional<Happened>> what = one(*job);
    if (!what) {
      if (!error) error = std::move(what).error();
      continue;
    }
    can = true;
    if (*what) happened.push_back(**std::move(what));
  }
  if (!can) return *std::move(error);
  return happened;
}

Result<std::optional<Happened>> park_one(const Job& job, const ParkJob& park) {
  const JobParked asked{job.id, JobState::kParking, ParkCause::kAsked, {}, park.by.user, park.deep};
  switch (job.state) {
    case JobState::kEnded:
      return has_ended(job);
    case JobState::kPending:
      return Error::invalid(name_of(job) + " has not started: there is nothing to park")
          .with_hint("mete hold " + by_name(job) + " keeps it from starting");
    case JobState::kRunning:
      break;
    case JobState::kParking:
    case JobState::kParked: {
      if (park.deep && !job.park->deep)
        return Error::busy(name_of(job) + " is parked already, with its contexts on the card")
            .with_hint("mete unpark " + by_name(job) + ", and then mete park --deep");
      // The job now stays until a user asks for it back, whatever parked it first.
      if (job.park->cause == ParkCause::kAsked && !job.park->wants_back)
        return std::optional<Happened>();
      JobParked again = asked;
      again.state = job.state;
      again.deep = job.park->deep;
      again.held = job.park->held;
      again.moved = job.park->moved;
      again.on_disk = job.park->on_disk;
      again.why = job.park->why;
      again.lost = job.park->lost;
      return std::optional<Happened>(again);
    }
    default:
      return not_while(job, "parked");
  }
  if (job.grant.empty())
    return Error::invalid(name_of(job) + " holds no card: there is nothing to park");
  if (!is_parkable(*job.spec) && !park.deep)
    return Error::invalid(name_of(job) + " cannot be parked")
        .with_evidence("it was not started to be parkable")
        .with_hint("mete park --deep " + by_name(job) +
                   " lets the driver do it; mete submit --preemptible starts jobs that can be");
  // The job runs on: the answer is that of a job that was asked and could not be parked.
  if (job.unparkable && job.unparkable->standing && !park.deep)
    return Error::busy(name_of(job) + " cannot be parked, and runs on")
        .with_evidence(job.unparkable->why)
        .with_hint("mete park --deep " + by_name(job) + " lets the driver do it, where it can");
  return std::optional<Happened>(asked);
}

Result<std::optional<Happened>> unpark_one(const Job& job) {
  switch (job.state) {
    case JobState::kEnded:
      return has_ended(job);
    case JobState::kParking:
    case JobState::kParked:
      if (job.park->lost)
        return Error::invalid(name_of(job) + " cannot come back")
            .with_evidence(job.park->why)
            .with_hint("mete requeue " + by_name(job) + " starts it anew, mete cancel ends it");
      // A user who asks again does not wait for the next retry.
      if (job.park->wants_back && job.park->why.empty()) return std::optional<Happened>();
      return std::optional<Happened>(JobUnparked{job.id, JobState::kParked});
    case JobState::kRunning:
    case JobState::kUnparking:
      return std::optional<Happened>();  // it is back, or about to be
    case JobState::kPending:
      return Error::invalid(name_of(job) + " has not started")
          .with_hint("mete explain " + by_name(job) + " says for what it waits");
    default:
      return not_while(job, "unparked");
  }
}

}  // namespace

std::uint64_t cost_of(const Job& job, std::uint64_t ran_ms, std::uint32_t cpus, WallTime now) {
  const std::uint64_t parked = std::min(ran_ms, parked_ms(job, now));
  const std::uint64_t full = mib_per_second(held_of(job.grant).bytes, cpus);
  Bytes stayed;
  for (const Bytes bytes : is_away(job) ? job.park->held : job.stayed) stayed = stayed.plus(bytes);
  const std::uint64_t rest = std::min(full, mib_per_second(stayed, 0));
  return full * ((ran_ms - parked) / 1000) + rest * (parked / 1000);
}

// ---- requests of users -------------------------------------------------------------------------

Decided Decider::on(const ParkJob& park) const {
  return of_each(of_caller(park.id, park.by), [&](const Job& job) { return park_one(job, park); });
}

Decided Decider::on(const UnparkJob& unpark) const {
  return of_each(of_caller(unpark.id, unpark.by), [&](const Job& job) { return unpark_one(job); });
}

// ---- reports of runners ------------------------------------------------------------------------

Decided Decider::on(const ParkReport& report) const {
  const Result<const Job*> found = of_user(report.id, report.by_uid);
  if (!found) return found.error();
  const Job& job = **found;
  if (report.parked && (report.held.size() != job.grant.size() || job.grant.empty()))
    return Error::invalid("a report on " + name_of(job) + " is about " +
                          std::to_string(report.held.size()) + " cards")
        .with_evidence("it has " + std::to_string(job.grant.size()));
  const JobParked away{job.id,
                       JobState::kParked,
                       ParkCause::kAsked,
                       {},
                       "",
                       false,
                       report.held,
                       report.moved,
                       report.why,
                       report.standing,
                       std::min(report.on_disk, report.moved)};
  const JobUnparked back{job.id, JobState::kRunning, report.why, report.standing};
  std::vector<Happened> happened;
  switch (job.state) {
    case JobState::kRunning:
      if (report.parked) {
        // The runner missed the order to come back, or parked without one: recorded as if it were
        // told to.
        happened.emplace_back(
            JobParked{job.id, JobState::kParking, ParkCause::kPreempted, {}, "", false});
        happened.emplace_back(away);
      } else if (job.unparkable ? job.unparkable->why != report.why ||
                                      job.unparkable->standing != report.standing
                                : !report.why.empty()) {
        happened.emplace_back(back);
      }
      break;
    case JobState::kParking:
      // Without a reason this does not answer the order: it was sent before the order arrived.
      if (!report.parked && report.why.empty()) break;
      [[fallthrough]];
    case JobState::kUnparking:
      happened.push_back(report.parked ? Happened(away) : Happened(back));
      break;
    case JobState::kParked:
      // Another job may have the room by now: a job comes back only when told to.
      if (!report.parked)
        return Error::busy(name_of(job) + " is parked, and was not told to come back");
      // A job that a user parked stays parked, whatever its program wants.
      if (report.wakes && job.park->cause == ParkCause::kIdle && !job.park->wants_back)
        happened.emplace_back(JobUnparked{job.id, JobState::kParked});
      break;
    default:
      break;  // it is being ended, or has ended
  }
  return happened;
}

Decided Decider::on(const Grow& grow) const {
  const Result<const Job*> found = of_user(grow.id, grow.by_uid);
  if (!found) return found.error();
  const Job& job = **found;
  if (job.state != JobState::kRunning && job.state != JobState::kStarting)
    return std::vector<Happened>{};
  if (grow.wanted.size() != job.grant.size())
    return Error::invalid(name_of(job) + " has " + std::to_string(job.grant.size()) + " cards");
  JobGrown grown{job.id, {}, false};
  std::optional<Sight> sight;
  Bytes within_quota = Bytes::from_bytes(UINT64_MAX);
  bool changed = job.growth == Growth::kAsked;
  for (std::size_t i = 0; i < job.grant.size(); ++i) {
    const GrantedCard& card = job.grant[i];
    Bytes bytes = card.bytes;
    if (!card.least.is_zero()) {
      const Bytes wanted = std::clamp(grow.wanted[i], card.least, card.most);
      if (wanted < bytes) bytes = wanted;
      if (wanted > bytes && job.growth != Growth::kAsked) {
        if (!sight) {
          sight = state_.look(moment_);
          if (const Quota quota = sight->input.quota_of(job.spec->user); quota.bytes)
            within_quota = (*quota.bytes).minus(state_.held_by(job.spec->user).bytes);
        }
        Bytes free;
        for (const PoolCard& each : sight->result.left.cards)
          if (each.card.uuid == card.uuid) free = each.grantable();
        free = std::min(free, within_quota);
        const Bytes step = std::max(
            kLeastGrowth, Bytes::from_bytes((card.most - card.least).count() / kGrowthSteps));
        const Bytes most = std::min(bytes.plus(free), card.most).round_down(kGranule);
        if (most >= wanted) bytes = std::min(most, wanted.plus(step));
        within_quota = within_quota.minus(bytes - card.bytes);
      }
    }
    changed = changed || bytes != card.bytes;
    grown.bytes.push_back(bytes);
  }
  std::vector<Happened> happened;
  if (changed) happened.emplace_back(std::move(grown));
  return happened;
}

std::optional<Wait> State::wait_to_return(const Job& job, const Moment& moment) const {
  if (job.state != JobState::kParked || !job.park->wants_back || job.park->lost)
    return std::nullopt;
  Pool pool = with_grants(moment.machine);
  keep_reserved(pool, reservations(), job.spec->user, moment.now, moment.now);
  Wait wait;
  wait.room.returns = true;
  wait.failure = job.park->why;
  for (std::size_t i = 0; i < job.grant.size(); ++i)
    for (PoolCard card : pool.cards) {
      if (card.card.uuid != job.grant[i].uuid) continue;
      card.drained = false;
      std::erase_if(card.holders, [&](const Holder& holder) { return holder.job == job.id; });
      std::erase_if(card.foreign, [&](const Outside& outside) { return outside.job == job.id; });
      const Need need{0, job.grant[i].whole, job.grant[i].bytes};
      const Room room = room_on(card, need);
      if (room.what == InTheWay::kNothing) continue;
      if (wait.room.cards.size() < kWaitCards)
        wait.room.cards.push_back(wait_on(card, need, room));
      else
        ++wait.room.unlisted;
      for (const Holder& holder : card.holders) wait.holders.push_back(holder.job);
    }
  return wait;
}

// ---- applying events ---------------------------------------------------------------------------

void EventApplier::on(const JobParked& parked) {
  Job& job = job_of(parked.id);
  METE_ASSERT(job.state == parked.state || may_follow(job.state, parked.state));
  const JobState before = job.state;
  state_.leave(job);
  job.state = parked.state;
  if (!job.park) job.park.emplace();
  if (before != parked.state) job.park->since = at_;
  job.idle.reset();
  if (parked.state == JobState::kParking || before == parked.state) {
    job.park->cause = parked.cause;
    job.park->for_job = parked.for_job;
    job.park->by = parked.by;
    job.park->deep = parked.deep;
    job.park->wants_back = parked.cause == ParkCause::kPreempted;
  }
  if (parked.state == JobState::kParked) {
    job.park->held = parked.held;
    job.park->moved = parked.moved;
    job.park->on_disk = parked.on_disk;
    job.park->why = parked.why;
    job.park->lost = parked.lost;
    job.unparkable.reset();
  }
  state_.enter(job);
}

void EventApplier::on(const JobUnparked& unparked) {
  Job& job = job_of(unparked.id);
  if (unparked.state == JobState::kParked) {
    METE_ASSERT(job.park.has_value());
    job.park->wants_back = true;
    job.park->why.clear();
    return;
  }
  METE_ASSERT(job.state == unparked.state || may_follow(job.state, unparked.state));
  if (unparked.state == JobState::kUnparking) {
    METE_ASSERT(job.park.has_value());
    job.parked_ms = parked_ms(job, at_);
    job.stayed = std::exchange(job.park->held, {});
    job.park->moved = Bytes();
    job.park->on_disk = Bytes();
    state_.leave(job);
    job.state = JobState::kUnparking;
    job.park->since = at_;
    job.park->why.clear();
    state_.enter(job);
    return;
  }
  const bool returned = job.state == JobState::kUnparking;
  state_.leave(job);
  job.state = JobState::kRunning;
  job.park.reset();
  job.unparkable.reset();
  if (returned) job.resumed = at_;
  if (!returned && !unparked.why.empty())
    job.unparkable = ParkRefusal{at_, unparked.why, unparked.standing};
  state_.enter(job);
}

void EventApplier::on(const JobGrown& grown) {
  Job& job = job_of(grown.id);
  if (grown.asked) {
    job.growth = Growth::kAsked;
    return;
  }
  METE_ASSERT(grown.bytes.size() == job.grant.size());
  bool more = false;
  for (std::size_t i = 0; i < job.grant.size(); ++i) {
    more = more || grown.bytes[i] > job.grant[i].bytes;
    job.grant[i].bytes = grown.bytes[i];
  }
  if (job.growth == Growth::kAsked)
    job.growth = Growth::kTight;
  else if (more)
    job.growth = Growth::kFree;
}

}  // namespace mete::core
