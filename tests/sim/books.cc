// SPDX-License-Identifier: Apache-2.0
// See books.h: what an event changes; rules.cc has what it must not do. enter() dispatches to one
// function per event, which checks the rules, updates the entry of the job, and adds to the sums of
// its cards, its user and its array.
#include "tests/sim/books.h"

#include <algorithm>
#include <utility>

namespace mete::sim {

using core::JobId;
using core::JobState;
using core::Outcome;
using core::When;

namespace {

std::int64_t latest_start(const core::JobSpec& spec) {
  return spec.deadline->ms - static_cast<std::int64_t>(spec.time_s.value_or(0)) * 1000;
}

}  // namespace

core::Request Entry::request() const {
  core::Request request = spec->request;
  if (gpu) request.gpu = gpu;
  return request;
}

bool Entry::has_grown() const {
  return std::any_of(grant.begin(), grant.end(), [](const core::GrantedCard& card) {
    return !card.least.is_zero() && card.bytes > card.least;
  });
}

std::vector<core::GrantedCard> Entry::held_now() const {
  std::vector<core::GrantedCard> cards = grant;
  if (!away()) return cards;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    cards[i].bytes = stays[i];
    cards[i].whole = false;
  }
  return cards;
}

bool Entry::in_line(WallTime now) const {
  return state == JobState::kPending && !held && unmet.empty() && not_before_ms <= now.ms;
}

void Books::fail(JobId id, const std::string& what) const {
  judge_.fail("job " + to_string(id) + " " + what);
}

const Entry* Books::find(JobId id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

Entry& Books::at(JobId id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) fail(id, "is in an event, and was never submitted");
  return found->second;
}

UserSums Books::user(const std::string& name) const {
  const auto found = users_.find(name);
  return found == users_.end() ? UserSums{} : found->second;
}

std::uint32_t Books::running_of_array(std::uint64_t number) const {
  const auto found = arrays_.find(number);
  return found == arrays_.end() ? 0 : found->second.running;
}

void Books::enter(const core::Event& event) {
  now_ = event.at;
  std::visit([this](const auto& what) { on(what); }, event.what);
}

// ---- waiting -----------------------------------------------------------------------------------

void Books::begin_waiting(Entry& entry) {
  pending_.insert(entry.id);
  for (const core::After& after : entry.unmet) dependents_[after.id].insert(entry.id);
  if (entry.spec->deadline) start_by_.emplace(latest_start(*entry.spec), entry.id);
}

void Books::stop_waiting(Entry& entry) {
  if (pending_.erase(entry.id) == 0) fail(entry.id, "did not wait");
  for (const core::After& after : entry.unmet) {
    const auto found = dependents_.find(after.id);
    if (found == dependents_.end()) continue;
    found->second.erase(entry.id);
    if (found->second.empty()) dependents_.erase(found);
  }
  doomed_.erase(entry.id);
  if (entry.spec->deadline) start_by_.erase({latest_start(*entry.spec), entry.id});
}

bool Books::is_open(JobId id) const {
  bool open = false;
  for (auto at = jobs_.lower_bound(id); at != jobs_.end() && at->first.number == id.number; ++at) {
    if (id.element && at->first != id) break;
    open = open || at->second.state != JobState::kEnded;
  }
  return open;
}

// A user wants it to run again: it waits for dependencies that have not ended, unless one of them
// has failed in part.
void Books::waits_again(Entry& entry) {
  for (const core::After& after : entry.spec->after) {
    const auto array = arrays_.find(after.id.number);
    const bool failed = !after.id.element && array != arrays_.end() && array->second.failed > 0;
    if (is_open(after.id) && !(failed && after.when == When::kOk)) entry.unmet.push_back(after);
  }
}

void Books::on(const core::JobSubmitted& what) {
  if (what.id.number != last_job_ + 1 || what.id.element) fail(what.id, "has a wrong number");
  last_job_ = what.id.number;
  const core::JobSpec& spec = *what.spec;
  Entry entry;
  entry.id = what.id;
  entry.spec = what.spec;
  entry.priority = spec.priority;
  entry.held = spec.held;
  entry.submitted = now_;
  entry.boots = boots_;
  if (spec.begin) entry.not_before_ms = spec.begin->ms;
  for (const core::After& after : spec.after)
    if (is_open(after.id)) entry.unmet.push_back(after);
  std::vector<std::uint32_t> elements;
  if (spec.array) elements = core::elements_of(*spec.array);
  const auto add = [&] {
    ++users_[spec.user].unfinished;
    begin_waiting(jobs_.emplace(entry.id, entry).first->second);
  };
  if (!spec.array) add();
  for (const std::uint32_t element : elements) {
    entry.id.element = element;
    add();
    ++arrays_[entry.id.number].open;
    ++arrays_[entry.id.number].remembered;
  }
  const core::Quota quota = quota_of(spec.user);
  if (quota.jobs && user(spec.user).unfinished > *quota.jobs)
    fail(what.id, "is more than its user may have unfinished");
}

void Books::on(const core::JobHeld& what) {
  Entry& entry = at(what.id);
  if (entry.state != JobState::kPending) fail(what.id, "is held, and does not wait");
  entry.held = true;
}

void Books::on(const core::JobReleased& what) {
  Entry& entry = at(what.id);
  if (entry.state != JobState::kPending) fail(what.id, "is released, and does not wait");
  entry.held = false;
}

void Books::on(const core::JobPriority& what) {
  Entry& entry = at(what.id);
  if (entry.state == JobState::kEnded) fail(what.id, "has ended, and gets another priority");
  entry.priority = what.priority;
}

void Books::on(const core::JobForecast& what) { (void)at(what.id); }

// ---- running -----------------------------------------------------------------------------------

// What it has on a card: all of its grant, or what a parked job leaves there.
void Books::put_on_cards(const Entry& entry) {
  for (std::size_t i = 0; i < entry.grant.size(); ++i) {
    const core::GrantedCard& card = entry.grant[i];
    Sums& sums = cards_[card.uuid];
    sums.bytes += entry.away() ? entry.stays[i].count() : card.bytes.count();
    sums.holders += entry.away() ? 0 : 1;
    sums.whole += card.whole && !entry.away() ? 1 : 0;
  }
}

void Books::take_off_cards(const Entry& entry) {
  for (std::size_t i = 0; i < entry.grant.size(); ++i) {
    const core::GrantedCard& card = entry.grant[i];
    Sums& sums = cards_[card.uuid];
    sums.bytes -= entry.away() ? entry.stays[i].count() : card.bytes.count();
    sums.holders -= entry.away() ? 0 : 1;
    sums.whole -= card.whole && !entry.away() ? 1 : 0;
  }
}

void Books::take(Entry& entry, const std::vector<core::GrantedCard>& grant) {
  entry.grant = grant;
  active_.insert(entry.id);
  UserSums& user = users_[entry.spec->user];
  ++user.running;
  put_on_cards(entry);
  for (const core::GrantedCard& card : grant) {
    ++user.cards;
    user.bytes += card.bytes.count();
  }
  if (entry.id.element) ++arrays_[entry.id.number].running;
  if (entry.spec->deadline) end_by_.emplace(entry.spec->deadline->ms, entry.id);
}

void Books::give_back(Entry& entry) {
  if (active_.erase(entry.id) == 0) fail(entry.id, "gives back what it does not have");
  UserSums& user = users_[entry.spec->user];
  --user.running;
  take_off_cards(entry);
  for (const core::GrantedCard& card : entry.grant) {
    --user.cards;
    user.bytes -= card.bytes.count();
  }
  entry.grant.clear();
  entry.stays.clear();
  entry.for_job.reset();
  entry.wants_back = entry.refuses_always = entry.asked_to_shrink = false;
  entry.runs_since.reset();
  entry.refused_at.reset();
  if (entry.id.element) --arrays_[entry.id.number].running;
  if (entry.spec->deadline) end_by_.erase({entry.spec->deadline->ms, entry.id});
}

void Books::on(const core::JobGranted& what) {
  Entry& entry = at(what.id);
  if (entry.state != JobState::kPending) fail(what.id, "is granted cards, and does not wait");
  check_grant(entry);
  stop_waiting(entry);
  entry.state = JobState::kStarting;
  take(entry, what.cards);
  check_sums(entry);
  check_reservations(entry);
}

void Books::on(const core::JobStarted& what) {
  Entry& entry = at(what.id);
  if (entry.state != JobState::kStarting) fail(what.id, "has started, and was not about to");
  const Life* life = lives_.find(what.id, entry.attempt);
  if (life == nullptr || life->program.ref != what.program)
    fail(what.id, "has started with a program that never ran");
  entry.state = JobState::kRunning;
  entry.runs_since = WallTime{now_.ms - static_cast<std::int64_t>(what.ago_ms)};
}

void Books::on(const core::JobParked& what) {
  Entry& entry = at(what.id);
  const JobState before = entry.state;
  if (before != what.state && !comes_after(before, what.state))
    fail(what.id,
         "is " + std::string(to_string(what.state)) + " after " + std::string(to_string(before)));
  if (what.state == JobState::kParking || before == what.state) {
    check_parking(entry, what);
    entry.cause = what.cause;
    entry.for_job = what.for_job;
    entry.wants_back = what.cause == core::ParkCause::kPreempted;
  }
  entry.state = what.state;
  if (before != what.state) entry.parked_since = now_;
  if (what.state != JobState::kParked) return;
  if (what.held.size() != entry.grant.size()) fail(what.id, "is parked on other cards than it has");
  check_away(entry, what);
  take_off_cards(entry);
  entry.stays = what.held;
  put_on_cards(entry);
  entry.tried_in_vain = !what.why.empty();
  entry.refused_at.reset();
  entry.refuses_always = false;
  judge_.saw(before == JobState::kUnparking ? "no room to come back" : "parked");
}

void Books::on(const core::JobUnparked& what) {
  Entry& entry = at(what.id);
  const JobState before = entry.state;
  check_return(entry, what);
  if (what.state == JobState::kParked) {
    entry.wants_back = true;
    entry.tried_in_vain = false;
    return;
  }
  entry.state = what.state;
  if (what.state == JobState::kUnparking) {
    take_off_cards(entry);
    entry.stayed = std::exchange(entry.stays, {});
    put_on_cards(entry);
    check_cards(entry);
    return;
  }
  const bool returned = before == JobState::kUnparking;
  if (returned) entry.runs_since = now_;
  entry.for_job.reset();
  entry.wants_back = false;
  entry.refused_at.reset();
  entry.refuses_always = !returned && what.standing;
  if (!returned && !what.why.empty()) entry.refused_at = now_;
  judge_.saw(returned ? "back from being parked" : "refused to park");
}

void Books::on(const core::JobGrown& what) {
  Entry& entry = at(what.id);
  if (what.asked) {
    if (!entry.has_grown()) fail(what.id, "is to give back what it has not");
    entry.asked_to_shrink = true;
    judge_.saw("asked to shrink");
    return;
  }
  if (what.bytes.size() != entry.grant.size()) fail(what.id, "grows on other cards than it has");
  UserSums& user = users_[entry.spec->user];
  bool more = false;
  take_off_cards(entry);
  for (std::size_t i = 0; i < entry.grant.size(); ++i) {
    core::GrantedCard& card = entry.grant[i];
    if (card.least.is_zero() ? what.bytes[i] != card.bytes
                             : what.bytes[i] < card.least || what.bytes[i] > card.most)
      fail(what.id, "grows beyond what it asked for");
    more = more || what.bytes[i] > card.bytes;
    user.bytes = user.bytes - card.bytes.count() + what.bytes[i].count();
    card.bytes = what.bytes[i];
  }
  put_on_cards(entry);
  judge_.saw(more ? "grown" : "shrunk");
  if (more) {
    if (entry.asked_to_shrink) fail(what.id, "grows, and was asked to give back");
    if (entry.state != JobState::kRunning && entry.state != JobState::kStarting)
      fail(what.id, "grows, and does not run");
    check_cards(entry);
    const core::Quota quota = quota_of(entry.spec->user);
    if (quota.bytes && user.bytes > quota.bytes->count())
      fail(what.id, "grows beyond the quota of its user");
  }
  entry.asked_to_shrink = false;
}

void Books::on(const core::JobStopping& what) {
  Entry& entry = at(what.id);
  if (!entry.active()) fail(what.id, "is being ended, and does not run");
  const bool late = entry.spec->deadline && entry.spec->deadline->ms <= now_.ms;
  // For a job that is being ended anyway: it is to run again, or not any more.
  const bool only_then = entry.state == JobState::kStopping && entry.outcome == what.why;
  const bool reason =
      ((what.why == Outcome::kCancelled || only_then) && witness.end_was_asked(what.id)) ||
      (what.why == Outcome::kLost && !witness.parent_lives(entry)) ||
      (what.why == Outcome::kDeadline && late) ||
      (what.why == Outcome::kTimeout && is_beyond_its_time(entry)) ||
      (what.why == Outcome::kEscaped && witness.has_escaped(what.id)) ||
      (what.why == Outcome::kCancelled && rules_.idle_stop_s != 0 && !what.note.empty() &&
       witness.was_idle(what.id));
  if (!reason)
    fail(what.id, "is being ended without a reason: " + std::string(to_string(what.why)));
  entry.state = JobState::kStopping;
  entry.outcome = what.why;
  entry.requeue = what.requeue;
}

void Books::end_attempt(Entry& entry, const std::optional<core::Exit>& exit) {
  check_exit(entry, exit);
  give_back(entry);
  lives_.over(entry.id, entry.attempt);
}

void Books::on(const core::JobEnded& what) {
  Entry& entry = at(what.id);
  if (entry.state == JobState::kEnded) fail(what.id, "has ended twice");
  if (entry.state == JobState::kPending) {
    check_end_of_pending(entry, what.outcome);
    stop_waiting(entry);
  } else {
    check_outcome(entry, what.outcome, what.exit);
    if (must_run_again(entry, what.outcome)) fail(what.id, "ended, and should have run again");
    end_attempt(entry, what.exit);
  }
  entry.state = JobState::kEnded;
  entry.outcome = what.outcome;
  entry.exit = what.exit;
  entry.held = entry.requeue = entry.doomed = false;
  entry.unmet.clear();
  --users_[entry.spec->user].unfinished;
  if (entry.id.element) {
    ArrayCount& array = arrays_[entry.id.number];
    --array.open;
    array.failed += what.outcome == Outcome::kOk ? 0 : 1;
  }
  tell_dependents(entry);
}

void Books::on(const core::JobRequeued& what) {
  Entry& entry = at(what.id);
  if (!entry.spec->detached) fail(what.id, "is a mete run, and waits again");
  if (entry.state == JobState::kPending) fail(what.id, "waits already, and waits again");
  if (entry.state == JobState::kEnded) {
    if (!witness.end_was_asked(what.id)) fail(what.id, "runs again without a request");
    ++users_[entry.spec->user].unfinished;
    if (entry.id.element) {
      ArrayCount& array = arrays_[entry.id.number];
      ++array.open;
      array.failed -= entry.outcome == Outcome::kOk ? 0 : 1;
    }
    entry.failures = 0;
    waits_again(entry);
  } else {
    check_outcome(entry, what.outcome, what.exit);
    if (!may_run_again(entry, what.outcome)) fail(what.id, "runs again, and should have ended");
    if (!entry.requeue && what.outcome != Outcome::kLost) ++entry.failures;
    if (entry.requeue) waits_again(entry);
    end_attempt(entry, what.exit);
  }
  if (what.gpu != entry.gpu &&
      (what.outcome != Outcome::kGpuOom || !entry.spec->retry_gpu_pct || !what.gpu))
    fail(what.id, "asks for another share, and not because of --retry-gpu");
  entry.gpu = what.gpu;
  ++entry.attempt;
  entry.state = JobState::kPending;
  entry.outcome.reset();
  entry.exit.reset();
  entry.requeue = false;
  entry.not_before_ms = std::max(entry.spec->begin ? entry.spec->begin->ms : 0,
                                 what.not_before ? what.not_before->ms : 0);
  begin_waiting(entry);
}

void Books::on(const core::JobUngranted& what) {
  Entry& entry = at(what.id);
  if (entry.state != JobState::kStarting) fail(what.id, "gives its grant back, and has started");
  const Life* life = lives_.find(what.id, entry.attempt);
  if (life != nullptr && life->program.stage != Program::Stage::kNone)
    fail(what.id, "gives its grant back, and its program was started");
  give_back(entry);
  entry.state = JobState::kPending;
  if (what.not_before)
    entry.not_before_ms =
        std::max(entry.spec->begin ? entry.spec->begin->ms : 0, what.not_before->ms);
  begin_waiting(entry);
}

// ---- dependencies ------------------------------------------------------------------------------

// `over`: the target, for an array all of it, has ended.
void Books::tell(JobId target, bool failed, bool over) {
  const auto found = dependents_.find(target);
  if (found == dependents_.end()) return;
  const std::set<JobId> dependents = found->second;
  for (const JobId id : dependents) {
    Entry& entry = jobs_.at(id);
    const auto is_met = [&](const core::After& after) {
      return over && after.id == target &&
             (after.when == When::kAny || (after.when == When::kFail) == failed);
    };
    for (const core::After& after : entry.unmet)
      if (after.id == target && !is_met(after) && (over || (after.when == When::kOk && failed)))
        entry.doomed = true;
    std::erase_if(entry.unmet, is_met);
    if (entry.doomed) doomed_.insert(id);
  }
  if (over) dependents_.erase(target);
}

void Books::tell_dependents(const Entry& entry) {
  tell(entry.id, entry.outcome != Outcome::kOk, true);
  if (!entry.id.element) return;
  const ArrayCount& array = arrays_[entry.id.number];
  tell(JobId{entry.id.number}, array.failed > 0, array.open == 0);
}

// ---- the rest ----------------------------------------------------------------------------------

void Books::on(const core::CardLost& what) {
  if (!lost_.insert(what.uuid).second) judge_.fail("a card was lost twice");
}
void Books::on(const core::CardBack& what) {
  if (lost_.erase(what.uuid) == 0) judge_.fail("a card is back that was not lost");
}
void Books::on(const core::CardDrained& what) { drained_.insert(what.uuid); }
void Books::on(const core::CardUndrained& what) { drained_.erase(what.uuid); }

void Books::on(const core::QuotaSet& what) {
  quotas_.erase(what.user);
  if (what.quota != core::Quota{}) quotas_[what.user] = what.quota;
}

void Books::on(const core::Reserved& what) {
  check_overlap(what.reservation);
  if (!reservations_.emplace(what.reservation.id, what.reservation).second)
    judge_.fail("two reservations have the same number");
}

void Books::on(const core::Unreserved& what) {
  if (reservations_.erase(what.id) == 0) judge_.fail("a reservation was taken back twice");
}

void Books::on(const core::Booted&) { ++boots_; }
void Books::on(const core::Repaired&) { judge_.fail("nothing was ever damaged here"); }

void Books::on(const core::EscapeSeen& what) {
  const Entry& entry = at(what.id);
  if (!active().contains(what.id) || entry.state == JobState::kStopping)
    fail(what.id, "is said to hold memory, and holds no grant or is being ended");
  judge_.saw("an escape seen");
}
void Books::on(const core::JobIdle& what) {
  if (at(what.id).state != JobState::kRunning) fail(what.id, "is idle, and does not run");
  if (!witness.was_idle(what.id)) fail(what.id, "is idle without an observation");
  judge_.saw("idle");
}
void Books::on(const core::JobActive& what) { (void)at(what.id); }

void Books::forget_unless(const std::function<bool(JobId)>& known) {
  std::erase_if(jobs_, [&](const auto& each) {
    if (each.second.state != JobState::kEnded || known(each.first)) return false;
    const auto array = arrays_.find(each.first.number);
    if (array != arrays_.end() && --array->second.remembered == 0) arrays_.erase(array);
    return true;
  });
}

}  // namespace mete::sim
