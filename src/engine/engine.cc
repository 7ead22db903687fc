// SPDX-License-Identifier: Apache-2.0
// See engine.h. turn(): every input goes through take(), which asks core::State for events and
// records them; then time (end_overdue, what_is_due) and placement (grant_what_fits) add theirs.
// commit() syncs all of it at once, and act() carries out what follows for the touched jobs; it is
// idempotent, so a restart simply touches every job. Answers wait in unsaid_ until their events are
// on disk. full_disk.cc has the turn that finds no room.
#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <type_traits>
#include <utility>

#include "wire/job.h"
#include "wire/wait_text.h"

namespace mete::engine {

namespace {

constexpr std::size_t kReplayBatch = 1000;
constexpr seam::Milliseconds kSweepTime{10};  // of a turn
constexpr std::int64_t kOldMs = 1'000;        // then the sight of the queue is made anew

// Foreign memory counts in steps: a neighbour that varies by a few megabytes is no reason to wake a
// thousand waiting programs.
constexpr std::uint64_t kBreath = 64ull << 20;

void coarsen(std::vector<core::Outside>& list) {
  for (core::Outside& outside : list)
    outside.bytes = outside.bytes.round_down(Bytes::from_bytes(kBreath));
}

core::Pool coarse(core::Pool machine) {
  for (core::PoolCard& card : machine.cards) {
    coarsen(card.claimed);
    coarsen(card.foreign);
  }
  return machine;
}

bool grows(const core::Job& job) {
  return std::any_of(job.grant.begin(), job.grant.end(),
                     [](const core::GrantedCard& card) { return !card.least.is_zero(); });
}

core::JobId id_of(const core::Input& input) {
  return std::visit(
      [](const auto& in) {
        if constexpr (requires { requires std::is_same_v<decltype(in.id), core::JobId>; })
          return in.id;
        else
          return core::JobId{};
      },
      input);
}

Error disk_is_full() {
  return Error::exhausted("the disk with mete's state is full")
      .with_hint("make room there; running jobs go on");
}

}  // namespace

Engine::Engine(seam::Clock& clock, seam::Store& store, seam::Launcher& launcher, Options options)
    : clock_(clock),
      store_(store),
      launcher_(launcher),
      options_(std::move(options)),
      state_(options_.rules) {}

Result<void> Engine::load() {
  loaded_ = true;
  state_ = core::State(options_.rules);
  blobs_.clear();
  since_snapshot_ = 0;
  Result<std::optional<seam::Snapshot>> snapshot = store_.load_snapshot();
  if (!snapshot) return std::move(snapshot).error();
  if (*snapshot) {
    Result<core::State::Parts> parts = wire::decode_parts((*snapshot)->data, (*snapshot)->seq);
    if (!parts) return std::move(parts).error().within("the recorded state");
    if (parts->last_seq != (*snapshot)->seq)
      return Error::corrupt("the recorded state is of event " + std::to_string(parts->last_seq) +
                            ", not " + std::to_string((*snapshot)->seq));
    state_ = core::State::from_parts(*std::move(parts), options_.rules);
  }
  if (Result<void> r = look_ahead(); !r) return r;
  for (;;) {
    Result<std::vector<seam::StoredEvent>> events =
        store_.load_events(state_.last_seq(), kReplayBatch);
    if (!events) return std::move(events).error();
    for (const seam::StoredEvent& stored : *events) {
      if (stored.seq != state_.last_seq() + 1)
        return Error::corrupt("event " + std::to_string(state_.last_seq() + 1) + " is missing");
      Result<core::Happened> what = wire::decode_event(stored.type, stored.data);
      if (!what) return std::move(what).error().within("event " + std::to_string(stored.seq));
      state_.apply({stored.seq, {stored.at_ms}, *std::move(what)});
      ++since_snapshot_;
    }
    if (events->size() < kReplayBatch) break;
  }
  for (std::string& hash : state_.blobs()) blobs_.insert(std::move(hash));
  return {};
}

// Rules that keep fewer ended jobs than those under which the log was written must not forget a job
// that the log requeues.
Result<void> Engine::look_ahead() {
  for (std::uint64_t after = state_.last_seq();;) {
    Result<std::vector<seam::StoredEvent>> events = store_.load_events(after, kReplayBatch);
    if (!events) return std::move(events).error();
    for (const seam::StoredEvent& stored : *events) {
      after = stored.seq;
      if (stored.type != core::type_of(core::JobRequeued{})) continue;
      if (const Result<core::JobId> id = core::parse_job_id(stored.job))
        state_.remember_until_requeued(*id);
    }
    if (events->size() < kReplayBatch) return {};
  }
}

Result<void> Engine::recover() {
  if (!loaded_)
    if (Result<void> r = load(); !r) return r;
  now_ = clock_.wall();
  if (Result<void> r = boot(); !r) return r;
  for (const auto& [id, job] : state_.jobs()) {
    if (job.state == core::JobState::kEnded) continue;
    if (job.state != core::JobState::kPending || !job.spec->detached) touched_.insert(id);
    // Our promises stay, whatever other daemons did while we were away.
    if (job.state != core::JobState::kPending) (void)launcher_.reserve(id, core::held_now(job));
  }
  ++version_;
  grants_due_ = true;
  // Otherwise in the turn in which there is room for what boot() had to record.
  if (settled()) act();
  return {};
}

// For a machine that was rebooted since: no earlier runner lives, and their pids may have been
// reused. The launcher finds what the keepers have left.
Result<void> Engine::boot() {
  if (options_.boot_id.empty() || options_.boot_id == state_.boot_id()) return {};
  const bool again = !state_.boot_id().empty();
  record(core::Booted{options_.boot_id});
  std::vector<core::JobId> gone;
  for (const auto& [id, job] : state_.jobs())
    if (again && job.state != core::JobState::kEnded && !job.spec->detached) gone.push_back(id);
  for (const core::JobId id : gone) {
    // A job that was being ended has ended as intended.
    const core::Job& job = *state_.find(id);
    record(core::JobEnded{id, job.outcome.value_or(core::Outcome::kLost), {}});
  }
  touched_.clear();
  // On a full disk this is recorded later, and decided again after another crash.
  Result<Kept> kept = commit();
  if (kept && *kept == Kept::kNoRoom) kept = commit();
  if (!kept) return kept.error();
  return {};
}

void Engine::see(core::Pool machine, std::map<core::JobId, Bytes> peaks) {
  peaks_ = std::move(peaks);
  if (machine == machine_) return;
  machine_changed_ = machine_changed_ || coarse(machine) != coarse(machine_);
  grants_due_ = true;
  machine_ = std::move(machine);
}

void Engine::record(core::Happened what) {
  core::Event event{state_.last_seq() + 1, clock_.wall(), std::move(what)};
  const std::string job = wire::job_of(event.what);
  std::uint32_t attempt = 0;
  if (!job.empty()) {
    const core::JobId id = *core::parse_job_id(job);
    const core::Job* before = state_.find(id);
    attempt = before == nullptr ? 1 : before->attempt;
    touched_.insert(id);
    // A job that had ended and runs once more was forgotten by the launcher long ago.
    const bool ends_it = std::holds_alternative<core::JobEnded>(event.what) ||
                         std::holds_alternative<core::JobRequeued>(event.what) ||
                         std::holds_alternative<core::JobUngranted>(event.what);
    if (ends_it && before != nullptr && before->state != core::JobState::kEnded) {
      over_.insert(id);
      if (const auto* ended = std::get_if<core::JobEnded>(&event.what))
        ++health_.ended[ended->outcome];
      if (const auto* again = std::get_if<core::JobRequeued>(&event.what))
        ++health_.ended[again->outcome];
    }
  }
  state_.apply(event);
  store_.append({event.seq, event.at.ms, std::string(core::type_of(event.what)), job,
                 wire::encode(event.what, attempt)});
  uncommitted_ = true;
  // A new job changes nothing for earlier jobs, and may itself have no chance.
  if (const auto* submitted = std::get_if<core::JobSubmitted>(&event.what))
    fresh_.push_back(submitted->id);
  else
    grants_due_ = true;
  ++since_snapshot_;
  ++version_;
}

void Engine::take(const Asked& asked, std::vector<Answer>& answers) {
  // A runner whose first answer was lost (we were killed in between) asks again: it has its job
  // already.
  const auto* again = std::get_if<core::Submit>(&asked.input);
  if (again != nullptr && again->runner) {
    if (const core::Job* job = state_.find_by_runner(*again->runner);
        job != nullptr && job->spec->uid == again->spec.uid) {
      unsaid_.push_back({asked.ticket, job->id});
      return;
    }
  }
  if (again != nullptr && !again->spec.key.empty()) {
    if (const std::optional<core::JobId> id =
            state_.find_by_key(again->spec.uid, again->spec.key)) {
      unsaid_.push_back({asked.ticket, answer_again(*id, *again)});
      return;
    }
  }
  if (can_wait(asked.input) && !has_room_for(asked)) {
    if (asked.ticket != 0) answers.push_back({asked.ticket, disk_is_full()});
    return;
  }
  Result<std::vector<core::Happened>> happened = state_.decide(asked.input, moment());
  if (!happened) {
    if (asked.ticket != 0) answers.push_back({asked.ticket, refused(asked, happened.error())});
    return;
  }
  core::JobId id = id_of(asked.input);
  if (!happened->empty()) put_blobs(asked);
  if (!others_let_it_grow(*happened)) happened->clear();
  for (const core::Happened& what : *happened)
    if (const auto* submitted = std::get_if<core::JobSubmitted>(&what)) id = submitted->id;
  Answer answer{asked.ticket, id, {}};
  record_all(*std::move(happened), answer.changed);
  if (std::holds_alternative<core::RunnerGone>(asked.input)) {
    const core::Job* job = state_.find(id);
    if (job != nullptr && job->state == core::JobState::kStopping) {
      orphans_.insert(id);
      touched_.insert(id);
    }
  }
  const auto* submit = std::get_if<core::Submit>(&asked.input);
  if (submit != nullptr && !submit->wait) answer.result = start_now_or_never(id);
  if (asked.ticket != 0) unsaid_.push_back(std::move(answer));
}

// The error that the client gets. A job that will not wait is told what it would have waited for.
Error Engine::refused(const Asked& asked, Error error) const {
  const auto* submit = std::get_if<core::Submit>(&asked.input);
  if (submit == nullptr || error != core::no_room_now()) return error;
  if (const std::optional<core::Wait> wait = state_.would_wait(*submit, moment()))
    error.evidence = "waits for " + wire::wait_text(*wait);
  return error;
}

// The answer to the first request with this key, given or not.
Result<core::JobId> Engine::answer_again(core::JobId id, const core::Submit& submit) const {
  const core::Job& job = *state_.first_of(id);
  // start_now_or_never() took it back.
  if (!submit.wait && job.state == core::JobState::kEnded && !job.started &&
      job.outcome == core::Outcome::kCancelled)
    return core::no_room_now().with_evidence("waits for memory that others have taken");
  return id;
}

// A job gets more only with the other daemons' consent. They learn that it has less once that is on
// disk: a daemon that replays the old log after a crash would otherwise grant those bytes twice.
bool Engine::others_let_it_grow(const std::vector<core::Happened>& happened) {
  const auto* grown = happened.size() == 1 ? std::get_if<core::JobGrown>(&happened[0]) : nullptr;
  if (grown == nullptr || grown->asked) return true;
  std::vector<core::GrantedCard> cards = state_.find(grown->id)->grant;
  bool more = false;
  for (std::size_t i = 0; i < cards.size(); ++i) {
    more = more || grown->bytes[i] > cards[i].bytes;
    cards[i].bytes = std::max(cards[i].bytes, grown->bytes[i]);
  }
  return !more || launcher_.reserve(grown->id, cards);
}

void Engine::record_all(std::vector<core::Happened> happened, std::vector<core::JobId>& changed) {
  for (core::Happened& what : happened) {
    if (const std::string job = wire::job_of(what); !job.empty())
      changed.push_back(*core::parse_job_id(job));
    record(std::move(what));
  }
}

void Engine::put_blobs(const Asked& asked) {
  for (const auto& [hash, data] : asked.blobs)
    if (blobs_.insert(hash).second) store_.put_blob(hash, data);
}

// What follows from the time, and then from that. Steps of sweeps may take as much time as fits
// into a turn; the next turn goes on with the next sweep.
void Engine::what_is_due() {
  const seam::Nanoseconds begun = clock_.monotonic();
  sweeps_wait_ = false;
  for (;;) {
    core::Moment now = moment();
    const bool sweeps = !state_.sweeps().all().empty();
    now.new_work = !sweeps || has_room_to_grant();
    sweeps_wait_ = sweeps && clock_.monotonic() - begun > kSweepTime;
    now.sweeps_from = sweeps_wait_ ? core::Moment::kNoSweeps : next_sweep_;
    std::vector<core::Happened> due = state_.due(now);
    if (due.empty()) return;
    if (const std::optional<std::uint64_t> sweep = core::sweep_of(due.front()))
      next_sweep_ = *sweep + 1;
    std::vector<core::JobId> changed;
    record_all(std::move(due), changed);
  }
}

void Engine::watch_time(const core::Job& job) {
  const bool running = job.state == core::JobState::kRunning;
  if (!job.spec->time_s || (!running && job.state != core::JobState::kStarting)) {
    limits_.erase(job.id);
    return;
  }
  const auto [found, fresh] = limits_.try_emplace(job.id);
  if (!fresh && found->second.running == running) return;
  const std::chrono::seconds seconds(*job.spec->time_s + options_.rules.grace_s);
  found->second = {running, clock_.monotonic() + seconds + kLimitPatience +
                                (running ? seam::Milliseconds(0) : kStartPatience)};
}

// The runner is told over its connection. A stopped runner cannot read that.
void Engine::watch_end(const core::Job& job) {
  if (job.state != core::JobState::kStopping || ends_.contains(job.id)) return;
  ends_[job.id] = clock_.monotonic() + std::chrono::seconds(options_.rules.grace_s) + kStopPatience;
  launcher_.wake(job.id, *job.runner);
}

void Engine::end_overdue() {
  if (limits_.empty() && ends_.empty()) return;
  const seam::Nanoseconds now = clock_.monotonic();
  for (const auto& [id, at] : ends_)
    if (at <= now && orphans_.insert(id).second) touched_.insert(id);
  std::vector<core::JobId> overdue;
  for (const auto& [id, limit] : limits_)
    if (limit.at <= now) overdue.push_back(id);
  for (const core::JobId id : overdue) {
    std::vector<core::JobId> changed;
    if (auto happened = state_.decide(core::Overdue{id}, moment()))
      record_all(*std::move(happened), changed);
  }
}

std::optional<WallTime> Engine::next_change() const {
  std::optional<WallTime> next = state_.next_change(now_);
  if (limits_.empty() && ends_.empty()) return next;
  const seam::Nanoseconds now = clock_.monotonic();
  const auto consider = [&](seam::Nanoseconds moment) {
    const auto left = std::chrono::ceil<seam::Milliseconds>(moment - now);
    const WallTime at{now_.ms + std::max<std::int64_t>(1, left.count())};
    if (!next || at < *next) next = at;
  };
  for (const auto& [id, limit] : limits_) consider(limit.at);
  for (const auto& [id, at] : ends_)
    if (!orphans_.contains(id)) consider(at);
  return next;
}

void Engine::set_rules(core::Policy policy, const core::Rules& rules) {
  options_.policy = policy;
  options_.rules = rules;
  state_.set_rules(rules);
  since_snapshot_ = std::max<std::uint64_t>(options_.snapshot_every, state_.jobs().size() + 1);
  grants_due_ = true;
  ++version_;
}

void Engine::put_snapshot() {
  std::vector<std::string> blobs = state_.blobs();
  blobs_ = {blobs.begin(), blobs.end()};
  store_.keep_blobs(std::move(blobs));
  store_.put_snapshot({state_.last_seq(), wire::encode(state_.parts())});
  since_snapshot_ = 0;
}

// There is room by our own state, but only the other daemons' consent makes it final.
Result<core::JobId> Engine::start_now_or_never(core::JobId id) {
  what_is_due();  // a job whose deadline has passed does not start now either
  grant_what_fits();
  // An array starts as a whole or not at all.
  bool waits = false;
  for (const core::Job* job : state_.find_all(id))
    waits = waits || job->state == core::JobState::kPending;
  if (!waits) return id;
  for (const core::Job* job : state_.find_all(id))
    record(job->state == core::JobState::kPending
               ? core::Happened(core::JobEnded{job->id, core::Outcome::kCancelled, {}})
               : core::Happened(core::JobStopping{job->id, core::Outcome::kCancelled}));
  return core::no_room_now().with_evidence("waits for memory that another daemon has just taken");
}

bool Engine::fresh_may_start() {
  for (const core::JobId id : std::exchange(fresh_, {})) {
    // All jobs of an array are of one kind.
    const std::vector<const core::Job*> jobs = state_.find_all(id);
    if (!jobs.empty() && jobs.front()->state == core::JobState::kPending &&
        state_.might_start(*jobs.front(), moment()))
      return true;
  }
  return false;
}

void Engine::grant_what_fits() {
  fresh_.clear();
  again_ = false;
  grants_due_ = true;
  if (!has_room_to_grant()) return;  // the room that is left is for the ends of running jobs
  bool refused = false;
  core::PassResult steps = state_.next_steps(moment());
  for (const core::JobId id : steps.back) {
    refused = !launcher_.reserve(id, state_.find(id)->grant);
    if (refused) break;
    record(core::JobUnparked{id, core::JobState::kUnparking});
  }
  // Jobs behind a refused one were placed as if it had started.
  if (refused) steps.start.clear();
  for (core::JobGranted& granted : steps.start) {
    // Another daemon promised these bytes a moment ago, which a later look may show. Or never, if
    // it has given them back by then: so the next turn tries again, whatever it sees.
    again_ = over_.contains(granted.id);  // its last attempt is to be forgotten first
    refused = again_ || !launcher_.reserve(granted.id, granted.cards);
    if (refused) break;
    record(std::move(granted));
  }
  grants_due_ = refused;
  for (const core::PassResult::ToPark& each : steps.park)
    record(core::JobParked{each.id, core::JobState::kParking, core::ParkCause::kPreempted,
                           each.for_job});
  for (const core::JobId id : steps.shrink) record(core::JobGrown{id, {}, true});
  if (!refused) grants_due_ = false;  // room comes with their answers
}

// A living runner ends its own job, unless it should have done so long ago; a keeper waits for an
// order. A runner that has become the program (run --exec) cannot take one.
bool Engine::is_ours_to_end(const core::Job& job) const {
  return job.state == core::JobState::kStopping &&
         (job.spec->detached || !job.runner || core::is_its_own_runner(job) ||
          job.outcome == core::Outcome::kLost || job.outcome == core::Outcome::kTimeout ||
          job.outcome == core::Outcome::kEscaped || orphans_.contains(job.id));
}

void Engine::act_on(const core::Job& job) {
  const core::JobId id = job.id;
  watch_time(job);
  if (core::is_parkable(*job.spec) && job.state != core::JobState::kPending && !job.grant.empty())
    launcher_.make_parkable(job);
  // What the job has given away is available to other daemons, now that it is on disk.
  if (core::is_away(job) || grows(job)) (void)launcher_.reserve(id, core::held_now(job));
  // After a restart this finds the keeper, also for a job that was being ended: the keeper still
  // needs the order.
  if (job.spec->detached && job.state != core::JobState::kPending && launched_.insert(id).second)
    launcher_.start(job);
  if (is_ours_to_end(job)) {
    if (stopping_.insert(id).second) launcher_.stop(id);
  } else if (job.runner && !job.spec->detached) {
    launcher_.watch(id, *job.runner);
    watch_end(job);
  }
}

void Engine::act() {
  for (const core::JobId id : std::exchange(over_, {})) {
    launcher_.forget(id);
    launched_.erase(id);
    limits_.erase(id);
    ends_.erase(id);
    orphans_.erase(id);
    stopping_.erase(id);
  }
  for (const core::Job& job : state_.take_forgotten()) launcher_.discard(job);
  for (const core::JobId id : std::exchange(touched_, {}))
    if (const core::Job* job = state_.find(id);
        job != nullptr && job->state != core::JobState::kEnded)
      act_on(*job);
}

core::Sight& Engine::sight() {
  const bool old = sight_ && (now_ < sight_->input.now || now_.ms - sight_->input.now.ms >= kOldMs);
  if (!sight_ || old || sight_version_ != version_) {
    sight_.emplace(state_.look(moment()));
    sight_version_ = version_;
  }
  return *sight_;
}

Result<std::vector<Answer>> Engine::turn(std::vector<Asked> inputs) {
  std::vector<Answer> answers;
  const seam::Nanoseconds begun = clock_.monotonic();
  const bool awaited = std::any_of(inputs.begin(), inputs.end(),
                                   [](const Asked& asked) { return asked.ticket != 0; });
  ++health_.turns;
  const WallTime before = std::exchange(now_, clock_.wall());
  if (full_ && !uncommitted_ && has_room_again()) full_ = false;
  if (short_) short_ = !store_.has_room(0);
  const std::map<core::Outcome, std::uint64_t> ended = health_.ended;
  decide_all(inputs, before, answers);
  Result<Kept> kept = commit();
  if (kept && *kept == Kept::kNoRoom) {
    // Once more, with new work refused and nothing granted.
    if (Result<void> r = withdraw(); !r) return std::move(r).error();
    answers.clear();
    health_.ended = ended;
    decide_all(inputs, before, answers);
    kept = commit();
  }
  if (!kept) return kept.error();
  if (awaited) health_.decisions.add(clock_.monotonic() - begun);
  if (*kept == Kept::kAll) {
    act();
    begins_ = state_.next_change(now_);
    for (Answer& answer : std::exchange(unsaid_, {})) answers.push_back(std::move(answer));
  }
  return answers;
}

void Engine::decide_all(const std::vector<Asked>& inputs, WallTime before,
                        std::vector<Answer>& answers) {
  batch_bytes_ = 0;
  for (const Asked& asked : inputs) take(asked, answers);
  if (std::exchange(machine_changed_, false)) ++version_;
  end_overdue();
  what_is_due();
  // A clock that was set back changes which jobs wait for a time, as a clock that advances does.
  if (now_ < before || (begins_ && now_ >= *begins_)) {
    grants_due_ = true;
    ++version_;
  }
  if (grants_due_ || fresh_may_start()) grant_what_fits();
}

core::SharedWait Engine::wait_of(core::JobId id) {
  const core::Job* job = state_.find(id);
  if (job == nullptr || job->state != core::JobState::kPending) return {};
  return state_.wait_of(*job, moment(), sight());
}

Result<core::Trial> Engine::try_out(const core::Submit& submit) {
  if (disk_full()) return disk_is_full();
  sight_.reset();
  return core::try_out(state_, moment(), submit);
}

Result<void> Engine::save() {
  put_snapshot();
  return store_.commit();
}

}  // namespace mete::engine
