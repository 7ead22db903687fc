// SPDX-License-Identifier: Apache-2.0
// See books.h: what no event may do, each rule in a few lines that can be compared with the
// documents. A rule sees the entry of the job before or after its event, the sums, and the witness
// for facts that are not in the log; it fails the run through the judge.
#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

#include "tests/sim/books.h"

namespace mete::sim {

using core::JobId;
using core::JobState;
using core::Outcome;

namespace {

// With --retry-gpu and no --retries.
constexpr std::uint32_t kGrowths = 3;

// What each outcome says about how a program ended: facts that are true of it, and facts that are
// not. A program that ended well has no other outcome than `ok` unless its time was over, whatever
// its memory did; RAM is judged before GPU memory.
enum Fact : unsigned {
  kNeverRan = 1,
  kTimeOver = 2,
  kCodeZero = 4,
  kBySignal = 8,
  kRamGone = 16,
  kGpuGone = 32
};
struct Meaning {
  Outcome outcome;
  unsigned is;
  unsigned is_not;
};
constexpr Meaning kMeanings[] = {
    {Outcome::kFailed, 0, kNeverRan | kTimeOver | kCodeZero | kBySignal | kRamGone | kGpuGone},
    {Outcome::kSignal, kBySignal, kNeverRan | kTimeOver | kRamGone | kGpuGone},
    {Outcome::kGpuOom, kGpuGone, kNeverRan | kTimeOver | kCodeZero | kRamGone},
    {Outcome::kRamOom, kRamGone, kNeverRan | kTimeOver | kCodeZero},
    {Outcome::kOk, kCodeZero, kNeverRan | kTimeOver},
    {Outcome::kTimeout, kTimeOver, kNeverRan},
    {Outcome::kLaunchFailed, kNeverRan, 0},
};

bool describes(Outcome outcome, const core::Exit& exit) {
  const unsigned facts = (exit.not_started ? kNeverRan : 0u) | (exit.timed_out ? kTimeOver : 0u) |
                         (exit.code == 0 ? kCodeZero : 0u) | (exit.signal ? kBySignal : 0u) |
                         (exit.ram_oom ? kRamGone : 0u) | (exit.gpu_oom ? kGpuGone : 0u);
  const auto* row = std::find_if(std::begin(kMeanings), std::end(kMeanings),
                                 [&](const Meaning& m) { return m.outcome == outcome; });
  return row != std::end(kMeanings) && (facts & row->is) == row->is && (facts & row->is_not) == 0;
}

bool is_failure(Outcome outcome) {
  return outcome == Outcome::kFailed || outcome == Outcome::kSignal ||
         outcome == Outcome::kGpuOom || outcome == Outcome::kRamOom;
}

}  // namespace

// The list of the states and what may come after each, as the documents have it.
bool comes_after(JobState before, JobState after) {
  static constexpr std::string_view kList =
      " pending:starting,ended, starting:running,pending,stopping,ended,"
      " running:parking,stopping,ended, parking:parked,running,stopping,ended,"
      " parked:unparking,stopping,ended, unparking:running,parked,stopping,ended,"
      " stopping:ended, ended:, ";
  const std::size_t from = kList.find(" " + std::string(to_string(before)) + ":");
  if (from == std::string_view::npos) return false;
  std::string_view row = kList.substr(kList.find(':', from));
  row = row.substr(0, row.find(' '));
  const std::string name(to_string(after));
  return row.find(":" + name + ",") != std::string_view::npos ||
         row.find("," + name + ",") != std::string_view::npos;
}

// ---- starting ----------------------------------------------------------------------------------

void Books::check_grant(const Entry& entry) const {
  if (entry.held) fail(entry.id, "starts, and is held");
  if (!entry.unmet.empty() || entry.doomed) fail(entry.id, "starts before what it comes after");
  if (entry.not_before_ms > now_.ms) fail(entry.id, "starts before its time");
  const core::JobSpec& spec = *entry.spec;
  if (spec.deadline &&
      now_.ms + static_cast<std::int64_t>(spec.time_s.value_or(0)) * 1000 > spec.deadline->ms)
    fail(entry.id, "starts, and cannot be over by its deadline");
}

core::Quota Books::quota_of(const std::string& user) const {
  const auto limits = [this](const std::string& of) {
    const auto found = quotas_.find(of);
    return found == quotas_.end() ? core::Quota{} : found->second;
  };
  core::Quota quota = limits(user);
  const core::Quota everybody = limits("");
  if (!quota.cards) quota.cards = everybody.cards;
  if (!quota.bytes) quota.bytes = everybody.bytes;
  if (!quota.running) quota.running = everybody.running;
  if (!quota.jobs) quota.jobs = everybody.jobs;
  if (!quota.disk) quota.disk = everybody.disk;
  return quota;
}

bool Books::within_limits(const Entry& entry, const std::vector<core::GrantedCard>& grant) const {
  const core::JobSpec& spec = *entry.spec;
  if (spec.array && spec.array->at_once &&
      running_of_array(entry.id.number) + 1 > *spec.array->at_once)
    return false;
  const core::Quota quota = quota_of(spec.user);
  const UserSums sums = user(spec.user);
  std::uint64_t bytes = sums.bytes;
  for (const core::GrantedCard& card : grant) bytes += card.bytes.count();
  return !(quota.running && sums.running + 1 > *quota.running) &&
         !(quota.cards && !grant.empty() && sums.cards + grant.size() > *quota.cards) &&
         !(quota.bytes && bytes > sums.bytes && bytes > quota.bytes->count());
}

void Books::check_cards(const Entry& entry) const {
  for (const core::GrantedCard& card : entry.grant) {
    const Sums& sums = cards_.at(card.uuid);
    const std::string name = "card " + std::to_string(card.index);
    const auto capacity = capacities_.find(card.uuid);
    if (capacity == capacities_.end()) judge_.fail(name + ": there is no such card");
    if (sums.bytes > capacity->second.count()) judge_.fail(name + ": more is granted than it has");
    if (sums.whole != 0 && sums.holders != 1) judge_.fail(name + ": held whole, and by others too");
  }
  check_cpus();
}

void Books::check_sums(const Entry& entry) const {
  check_cards(entry);
  const core::JobSpec& spec = *entry.spec;
  if (spec.array && spec.array->at_once && running_of_array(entry.id.number) > *spec.array->at_once)
    fail(entry.id, "is one more of its array than may run at once");
  const core::Quota quota = quota_of(spec.user);
  const UserSums sums = user(spec.user);
  if ((quota.running && sums.running > *quota.running) ||
      (quota.cards && !entry.grant.empty() && sums.cards > *quota.cards) ||
      (quota.bytes && !entry.grant.empty() && sums.bytes > quota.bytes->count()))
    fail(entry.id, "is more than the quota of its user");
}

// A job that asks for more CPUs than there are runs alone.
void Books::check_cpus() const {
  if (!rules_.cpus) return;
  std::uint64_t sum = 0;
  for (const JobId id : active_) {
    const Entry& entry = jobs_.at(id);
    if (!entry.spec->detached || entry.away()) continue;
    const core::Request& request = entry.spec->request;
    const bool without_cards =
        request.gpu && request.gpu->cards.kind == core::CardCount::Kind::kNone;
    sum += std::min(*rules_.cpus, request.cpus.value_or(without_cards ? 1 : 0));
  }
  if (sum > *rules_.cpus) judge_.fail("jobs have more CPUs than there are");
}

// A job of another user that could still run when a reservation begins leaves it its bytes.
void Books::check_reservations(const Entry& entry) const {
  if (reservations_.empty() || entry.grant.empty()) return;
  const core::JobSpec& spec = *entry.spec;
  // With TERM, grace and KILL after its limit.
  const std::optional<std::uint64_t> takes =
      spec.time_s ? *spec.time_s + rules_.grace_s : witness.learned(spec);
  for (const auto& [number, reservation] : reservations_) {
    if (reservation.user == spec.user || reservation.until <= now_) continue;
    if (takes && now_.ms + static_cast<std::int64_t>(*takes) * 1000 <= reservation.from.ms)
      continue;
    for (const core::GrantedCard& reserved : reservation.cards) {
      const auto mine = std::find_if(entry.grant.begin(), entry.grant.end(),
                                     [&](const auto& card) { return card.uuid == reserved.uuid; });
      if (mine == entry.grant.end()) continue;
      judge_.saw("beside a reservation");
      std::uint64_t bytes = reserved.bytes.count();
      for (const JobId id : active_) {
        const Entry& other = jobs_.at(id);
        // A returning job gets its cards again, whatever was reserved meanwhile; maybe after this
        // one.
        if (other.spec->user == reservation.user || other.state == JobState::kUnparking) continue;
        for (const core::GrantedCard& card : other.held_now())
          if (card.uuid == reserved.uuid) bytes += card.bytes.count();
      }
      if (reserved.whole || bytes > capacities_.at(reserved.uuid).count())
        fail(entry.id, "has what is reserved for " + reservation.user);
    }
  }
}

// No more of a card is reserved for one time than it has.
void Books::check_overlap(const core::Reservation& made) const {
  for (const core::GrantedCard& card : made.cards) {
    std::uint64_t bytes = card.bytes.count();
    for (const auto& [number, other] : reservations_) {
      if (other.until <= made.from || made.until <= other.from) continue;
      for (const core::GrantedCard& reserved : other.cards) {
        if (reserved.uuid != card.uuid) continue;
        if (reserved.whole || card.whole) judge_.fail("two reservations of one whole card");
        bytes += reserved.bytes.count();
      }
    }
    if (bytes > capacities_.at(card.uuid).count())
      judge_.fail("more of a card is reserved than it has");
  }
}

// ---- parking -----------------------------------------------------------------------------------

void Books::check_parking(const Entry& entry, const core::JobParked& what) const {
  const Life* life = lives_.find(entry.id, entry.attempt);
  switch (what.cause) {
    case core::ParkCause::kAsked:
      if (!witness.park_was_asked(entry.id)) fail(entry.id, "is parked without a request");
      judge_.saw("parked by hand");
      return;
    case core::ParkCause::kIdle:
      if (!witness.was_idle(entry.id)) fail(entry.id, "is parked as idle, and was not");
      if (entry.spec->idle_s == 0u) fail(entry.id, "is parked as idle, and asked not to be");
      judge_.saw("parked as idle");
      return;
    case core::ParkCause::kPreempted:
      break;
  }
  if (what.for_job) {
    const Entry* other = find(*what.for_job);
    if (other == nullptr) fail(entry.id, "is parked for a job that is not there");
    check_preemption(entry, *other);
    return;
  }
  // Its runner reports it.
  if (life != nullptr && life->program.lives() && life->memory.stage() != Memory::Stage::kAway)
    fail(entry.id, "is believed to be parked, and is not");
  judge_.saw("parked against expectation");
}

void Books::check_preemption(const Entry& entry, const Entry& other) const {
  judge_.saw("preempted");
  const std::string name = "is parked for job " + to_string(other.id) + ", ";
  if (other.state != JobState::kPending) fail(entry.id, name + "which does not wait");
  if (other.spec->no_preempt) fail(entry.id, name + "which wants no job to be");
  const bool agreed = entry.spec->preemptible.value_or(false);
  const bool growth = entry.has_grown() && !entry.spec->shed;
  if (!agreed && !growth) fail(entry.id, name + "and never agreed to that");
  if (!(agreed && entry.priority < other.priority) && !(growth && entry.priority <= other.priority))
    fail(entry.id, name + "which is not above it");
  if (growth && entry.priority == other.priority) judge_.saw("parked for its growth");
  const auto ms = [](std::uint64_t seconds) { return static_cast<std::int64_t>(seconds) * 1000; };
  if (!entry.runs_since || now_.ms - entry.runs_since->ms < ms(rules_.park_min_run_s))
    fail(entry.id, name + "and has just begun");
  if (entry.refuses_always) fail(entry.id, name + "and cannot be");
  if (entry.refused_at && now_.ms - entry.refused_at->ms < ms(rules_.park_retry_s))
    fail(entry.id, name + "and refused a moment ago");
}

// Its memory is really away, except what is reported to stay.
void Books::check_away(const Entry& entry, const core::JobParked& what) const {
  const Life* life = lives_.find(entry.id, entry.attempt);
  if (life == nullptr || !life->program.lives()) return;
  if (life->memory.stage() != Memory::Stage::kAway || life->memory.held() != what.held)
    fail(entry.id, "is believed to be parked, and is not");
}

void Books::check_return(const Entry& entry, const core::JobUnparked& what) const {
  if (what.state == JobState::kParked) {
    if (!entry.is_parked()) fail(what.id, "may come back, and was not away");
    if (!witness.return_was_asked(what.id)) fail(what.id, "may come back without a request");
    return;
  }
  if (entry.state != what.state && !comes_after(entry.state, what.state))
    fail(what.id, "is " + std::string(to_string(what.state)) + " after " +
                      std::string(to_string(entry.state)));
  if (what.state == JobState::kUnparking) {
    if (!entry.wants_back) fail(what.id, "is to come back, and was not wanted back");
    return;
  }
  const Life* life = lives_.find(entry.id, entry.attempt);
  if (life != nullptr && life->program.lives() && !life->memory.runs())
    fail(what.id, "is believed to be back, and is not");
}

// ---- ending ------------------------------------------------------------------------------------

void Books::check_end_of_pending(const Entry& entry, Outcome outcome) const {
  const core::JobSpec& spec = *entry.spec;
  bool reason = false;
  if (outcome == Outcome::kDependency) reason = entry.doomed;
  if (outcome == Outcome::kDeadline)
    reason = spec.deadline && now_.ms + static_cast<std::int64_t>(spec.time_s.value_or(0)) * 1000 >
                                  spec.deadline->ms;
  if (outcome == Outcome::kCancelled)
    reason = witness.end_was_asked(entry.id) || (!spec.detached && !witness.parent_lives(entry));
  if (outcome == Outcome::kLost) reason = !spec.detached && boots_ > entry.boots;
  if (!reason)
    fail(entry.id, "ended while it waited, without a reason: " + std::string(to_string(outcome)));
}

// The recorded exit is the one that its parent wrote, and no process is left.
void Books::check_exit(const Entry& entry, const std::optional<core::Exit>& exit) const {
  const Life* life = lives_.find(entry.id, entry.attempt);
  if (life != nullptr && life->program.lives())
    fail(entry.id, "is over, and its program still runs");
  const bool written = life != nullptr && life->exit.has_value();
  if (!written) {
    const bool never_launched = exit && exit->not_started && entry.spec->detached &&
                                (life == nullptr || life->program.stage == Program::Stage::kNone);
    if (exit && !never_launched) fail(entry.id, "has an exit that was never written");
    return;
  }
  // A `mete run` that was killed early has reported nothing; one that let its program run for too
  // long is not waited for.
  if (!exit && !entry.spec->detached &&
      (!witness.parent_lives(entry) || entry.outcome == Outcome::kTimeout ||
       entry.outcome == Outcome::kEscaped))
    return;
  if (!exit) fail(entry.id, "is over, and its exit was lost");
  if (*exit != *life->exit) fail(entry.id, "has another exit than was written");
  judge_.saw(entry.spec->detached ? "a keeper's exit" : "a run's exit");
}

void Books::check_outcome(const Entry& entry, Outcome outcome,
                          const std::optional<core::Exit>& exit) const {
  bool right = false;
  if (entry.state == JobState::kStopping)
    right = outcome == *entry.outcome;
  else if (exit)
    right = describes(outcome, *exit);
  else
    right = outcome == Outcome::kLost && !entry.spec->detached && boots_ > entry.boots;
  if (!right) fail(entry.id, "ended, but not as " + std::string(to_string(outcome)));
}

// Its time is over by so much that its runner should have ended it long ago.
bool Books::is_beyond_its_time(const Entry& entry) const {
  if (!entry.spec->time_s) return false;
  const Life* life = lives_.find(entry.id, entry.attempt);
  judge_.saw("a job beyond its time");
  // For a job that has not begun, or whose program is gone and whose keeper reports nothing, there
  // is nothing to compare with.
  if (life == nullptr || !life->program.lives()) return true;
  if (!life->memory.runs()) return false;
  return life->program.stop_at + std::chrono::seconds(rules_.grace_s) <= lives_.now();
}

bool Books::may_run_again(const Entry& entry, Outcome outcome) const {
  const core::JobSpec& spec = *entry.spec;
  const bool stopped = entry.state == JobState::kStopping;
  if (stopped && entry.requeue) return true;
  if (outcome == Outcome::kLost && spec.requeue) return true;
  if (stopped || !is_failure(outcome)) return false;
  const bool grows = outcome == Outcome::kGpuOom && spec.retry_gpu_pct;
  return entry.failures + 1 <= (spec.retries == 0 && grows ? kGrowths : spec.retries);
}

// A share that cannot grow any more is no reason for a retry.
bool Books::must_run_again(const Entry& entry, Outcome outcome) const {
  const bool grows = outcome == Outcome::kGpuOom && entry.spec->retries == 0;
  return entry.spec->detached && !grows && may_run_again(entry, outcome);
}

// ---- at all times ------------------------------------------------------------------------------

void Books::nothing_is_overdue(WallTime now) const {
  if (!doomed_.empty())
    fail(*doomed_.begin(), "waits for what can never be, and should have ended as `dependency`");
  if (!start_by_.empty() && start_by_.begin()->first < now.ms)
    fail(start_by_.begin()->second, "waits, and cannot be over by its deadline any more");
  for (const auto& [ms, id] : end_by_) {
    if (ms > now.ms) break;
    if (jobs_.at(id).state != JobState::kStopping) fail(id, "runs beyond its deadline");
  }
  for (const auto& [number, reservation] : reservations_)
    if (reservation.until <= now) judge_.fail("a reservation is over, and still there");
}

void Books::audit() const {
  std::map<std::string, Sums> cards;
  std::map<std::string, UserSums> users;
  std::set<JobId> active;
  for (const auto& [id, entry] : jobs_) {
    UserSums& user = users[entry.spec->user];
    user.unfinished += entry.state == JobState::kEnded ? 0 : 1;
    if (!entry.active()) continue;
    active.insert(id);
    ++user.running;
    for (std::size_t i = 0; i < entry.grant.size(); ++i) {
      const core::GrantedCard& card = entry.grant[i];
      Sums& sums = cards[card.uuid];
      sums.bytes += entry.away() ? entry.stays[i].count() : card.bytes.count();
      sums.holders += entry.away() ? 0 : 1;
      sums.whole += card.whole && !entry.away() ? 1 : 0;
      ++user.cards;
      user.bytes += card.bytes.count();
    }
  }
  judge_.require(active == active_, "the books do not add up: who has a grant");
  for (const auto& [uuid, sums] : cards_)
    judge_.require(sums == cards[uuid], "the books do not add up: a card");
  for (const auto& [name, sums] : users_)
    judge_.require(sums == users[name], "the books do not add up: a user");
}

}  // namespace mete::sim
