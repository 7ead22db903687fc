// SPDX-License-Identifier: Apache-2.0
// See checker.h; answers.cc checks the answers. follow() replays the newly committed events into a
// second State and into the books; after_turn() compares both with the engine for every touched
// job, and the Line with what was granted. After a death, and every thousand steps, all jobs are
// compared.
#include "tests/sim/checker.h"

#include <algorithm>
#include <type_traits>

#include "wire/event.h"
#include "wire/wait_text.h"

namespace mete::sim {

using core::JobId;
using core::JobState;

namespace {

constexpr std::uint64_t kAuditEvery = 1000;  // steps
// Finding a reason to wait needs another pass over the queue, and text.
constexpr std::uint64_t kWaitsEvery = 50;  // turns
constexpr std::uint64_t kAdviceEvery = 100;

// For traces.
std::string in_words(const core::Input& input) {
  static constexpr const char* kNames[] = {
      "Submit",   "Started", "Ended",    "Cancel",  "Hold",      "Release",    "Requeue",
      "Priority", "Drain",   "Quota",    "Reserve", "Unreserve", "RunnerGone", "NotLaunched",
      "JobGone",  "Overdue", "Foretold", "Park",    "Unpark",    "ParkReport", "Grow",
      "Idle",     "Active",  "Escaped",  "Look"};
  std::string text = kNames[input.index()];
  std::visit(
      [&](const auto& in) {
        if constexpr (requires { requires std::is_same_v<decltype(in.id), JobId>; })
          text += " " + to_string(in.id);
      },
      input);
  return text;
}

// The cards on which a job with a grant gets more.
void add_given(const core::Happened& what, const Books& books, std::set<std::string>& cards) {
  const auto* back = std::get_if<core::JobUnparked>(&what);
  const auto* grown = std::get_if<core::JobGrown>(&what);
  const Entry* entry = back != nullptr    ? books.find(back->id)
                       : grown != nullptr ? books.find(grown->id)
                                          : nullptr;
  if (entry == nullptr) return;
  for (std::size_t i = 0; i < entry->grant.size(); ++i)
    if (back != nullptr ? back->state == JobState::kUnparking
                        : i < grown->bytes.size() && grown->bytes[i] > entry->grant[i].bytes)
      cards.insert(entry->grant[i].uuid);
}

bool holds(const core::Job& job) {
  return job.state != JobState::kPending && job.state != JobState::kEnded;
}

}  // namespace

Checker::Checker(Judge& judge, World& world)
    : judge_(judge),
      world_(world),
      line_(judge, world.books_),
      advice_dice_(judge.seed()),
      advice_(judge, advice_dice_, world.books_),
      follower_(world.options_.rules) {
  Witness& witness = world.books_.witness;
  witness.learned = [this](const core::JobSpec& spec) {
    return follower_.estimates().ends_by(spec.user, spec.name, 0, 95);
  };
  witness.end_was_asked = [this](JobId id) {
    return ends_asked_.contains(id.number) || (hurried_ && id.number >= *hurried_);
  };
  witness.park_was_asked = [this](JobId id) { return parks_asked_.contains(id.number); };
  witness.return_was_asked = [this](JobId id) { return returns_asked_.contains(id.number); };
  witness.was_idle = [this](JobId id) { return idle_.contains(id.number); };
  witness.has_escaped = [this](JobId id) { return escaped_.contains(id.number); };
  witness.parent_lives = [&world](const Entry& entry) { return world.parent_lives(entry); };
}

// ---- the log -----------------------------------------------------------------------------------

void Checker::follow() {
  fresh_.clear();
  more_.clear();
  returned_.clear();
  touched_.clear();
  const std::uint64_t last = world_.disk_.last_committed();
  if (last < followed_) judge_.fail("what was on disk is not there any more");
  const std::vector<seam::StoredEvent>& committed = world_.disk_.committed();
  if (last - followed_ > committed.size()) judge_.fail("events were let go of before their time");
  for (std::size_t i = committed.size() - (last - followed_); i < committed.size(); ++i) {
    const seam::StoredEvent& event = committed[i];
    if (event.seq != ++followed_)
      judge_.fail("event " + std::to_string(event.seq) + " after a gap");
    const Result<core::Happened> what = wire::decode_event(event.type, event.data);
    if (!what) judge_.fail("event " + std::to_string(event.seq) + ": " + what.error().message);
    if (judge_.traces()) judge_.trace("  " + event.type + " " + event.job + " " + event.data);
    const core::Event decoded{event.seq, {event.at_ms}, *what};
    add_given(*what, world_.books_, more_);
    world_.books_.enter(decoded);
    follower_.apply(decoded);
    (void)follower_.take_forgotten();
    judge_.saw(event.type);
    if (event.job.empty()) continue;
    const Result<JobId> id = core::parse_job_id(event.job);
    if (!id) judge_.fail("event " + std::to_string(event.seq) + " is about " + event.job);
    touched_.insert(*id);
    if (std::holds_alternative<core::JobGranted>(*what)) fresh_.push_back(*id);
    if (const auto* back = std::get_if<core::JobUnparked>(&*what);
        back != nullptr && back->state == JobState::kUnparking)
      returned_.push_back(*id);
  }
}

void Checker::forget_the_batch() {
  batch_.clear();
  ends_asked_.clear();
  parks_asked_.clear();
  returns_asked_.clear();
  idle_.clear();
  escaped_.clear();
  hurried_.reset();
  old_ = false;
}

// ---- turns -------------------------------------------------------------------------------------

void Checker::before_turn(const std::vector<engine::Asked>& inputs) {
  was_full_ = world_.engine_->disk_full() && world_.disk_is_full_;
  if (judge_.traces()) judge_.trace("turn at " + to_string(world_.clock_.wall()));
  if (batch_.empty()) known_jobs_ = world_.books_.last_job();
  for (const engine::Asked& asked : inputs) {
    if (judge_.traces()) judge_.trace("  input " + in_words(asked.input));
    batch_.push_back(asked.input);
    if (asked.ticket != 0) asked_.emplace(asked.ticket, asked.input);
    if (const auto* gone = std::get_if<core::RunnerGone>(&asked.input))
      runner_gone_.insert(gone->id);
    const auto* submit = std::get_if<core::Submit>(&asked.input);
    if (submit != nullptr && !submit->wait && !hurried_) hurried_ = world_.books_.last_job() + 1;
    if (const auto* cancel = std::get_if<core::Cancel>(&asked.input))
      ends_asked_.insert(cancel->id.number);
    if (const auto* requeue = std::get_if<core::Requeue>(&asked.input))
      ends_asked_.insert(requeue->id.number);
    if (const auto* park = std::get_if<core::ParkJob>(&asked.input))
      parks_asked_.insert(park->id.number);
    if (const auto* unpark = std::get_if<core::UnparkJob>(&asked.input))
      returns_asked_.insert(unpark->id.number);
    if (const auto* report = std::get_if<core::ParkReport>(&asked.input); report && report->wakes)
      returns_asked_.insert(report->id.number);
    if (const auto* idle = std::get_if<core::Idle>(&asked.input)) idle_.insert(idle->id.number);
    if (const auto* escaped = std::get_if<core::Escaped>(&asked.input); escaped && escaped->stop)
      escaped_.insert(escaped->id.number);
  }
}

void Checker::after_turn(const Result<std::vector<engine::Answer>>& answers) {
  ++turns_;
  judge_.saw("turn");
  const bool refused = world_.hands_.take_refused();
  if (!answers) {
    judge_.saw("failed commit");
    return;
  }
  const engine::Engine& engine = *world_.engine_;
  follow();
  check_answers(*answers);
  if (!engine.settled()) {
    judge_.saw("unsettled turn");
    old_ = true;
    return;
  }
  if (was_full_ && !old_ && !fresh_.empty())
    judge_.fail("a job was given cards while the disk was full");
  const WallTime now = engine.moment().now;
  // A job that would not wait was placed in the middle of a turn, when there may have been less
  // room.
  if (!old_ && !hurried_) {
    check_given_cards();
    world_.books_.nothing_is_overdue(now);
    const bool all_were_asked = !refused && !engine.disk_full() && !engine.again();
    line_.check({engine.machine(), now, engine.state(), fresh_, returned_, all_were_asked});
  }
  for (const JobId id : touched_) {
    check_same(id);
    check_launcher(id);
  }
  if (turns_ % kWaitsEvery == 0) check_waits(false);
  if (turns_ % kAdviceEvery == 0) advice_.check(engine.state(), engine.moment());
  forget_the_batch();
}

// Cards as the daemon saw them, and as they really are.
void Checker::check_given_cards() const {
  std::set<std::string> to_new_ones;
  for (const JobId id : fresh_)
    if (const Entry* entry = world_.books_.find(id); entry != nullptr)
      for (const core::GrantedCard& card : entry->grant) to_new_ones.insert(card.uuid);
  std::set<std::string> cards = more_;
  cards.insert(to_new_ones.begin(), to_new_ones.end());
  const core::Pool& seen = world_.engine_->machine();
  const core::Pool& real = world_.cards_.now();
  for (std::size_t i = 0; i < seen.cards.size(); ++i) {
    const core::PoolCard& card = seen.cards[i];
    if (!cards.contains(card.card.uuid)) continue;
    const std::string name = "card " + std::to_string(card.card.index);
    const Sums& sums = world_.books_.cards().at(card.card.uuid);
    if (card.lost || card.stale || !card.unusable.empty() ||
        (to_new_ones.contains(card.card.uuid) && world_.books_.drained().contains(card.card.uuid)))
      judge_.fail(name + ": granted while it was not to be used");
    const std::uint64_t capacity = card.card.capacity.count();
    if (sums.bytes + sum(card.claimed).count() + sum(card.foreign).count() > capacity)
      judge_.fail(name + ": granted what others were seen to hold");
    if (card.one_process && sums.holders != 1)
      judge_.fail(name + ": for one process, and two hold it");
    if (sums.bytes + sum(real.cards[i].claimed).count() > capacity)
      judge_.fail(name + ": granted what another daemon had been promised");
    if (sums.whole != 0 && !real.cards[i].claimed.empty())
      judge_.fail(name + ": granted whole while another daemon has a share");
  }
}

// The entry of a job in the books equals the engine's state of it.
void Checker::check_same(JobId id) const {
  const Entry* entry = world_.books_.find(id);
  const core::Job* job = world_.engine_->state().find(id);
  if (entry == nullptr) return;  // an array: its jobs are compared in the audit
  if (job == nullptr) {
    if (entry->state != JobState::kEnded) judge_.fail("job " + to_string(id) + " is forgotten");
    return;
  }
  const bool same = job->state == entry->state && job->attempt == entry->attempt &&
                    job->priority == entry->priority && job->held == entry->held &&
                    job->requeue == entry->requeue && *job->spec == *entry->spec &&
                    job->exit == entry->exit && (!entry->active() || job->grant == entry->grant) &&
                    (job->state == JobState::kPending || job->outcome == entry->outcome) &&
                    (!entry->active() || core::held_now(*job) == entry->held_now()) &&
                    (!entry->is_parked() || (job->park && job->park->cause == entry->cause &&
                                             job->park->wants_back == entry->wants_back &&
                                             job->park->for_job == entry->for_job));
  if (!same) judge_.fail("job " + to_string(id) + " is not what the log says");
}

void Checker::check_launcher(JobId id) const {
  const core::Job* job = world_.engine_->state().find(id);
  const Hands& hands = world_.hands_;
  const std::string name = "job " + to_string(id);
  const bool active = job != nullptr && holds(*job);
  const auto reserved = hands.reserved().find(id);
  if (active != (reserved != hands.reserved().end()) ||
      (active && reserved->second != core::held_now(*job)))
    judge_.fail(name + ": the other daemons were told of another grant");
  const auto started = hands.started().find(id);
  const bool detached = job != nullptr && job->spec->detached.has_value();
  if ((active && detached) != (started != hands.started().end()) ||
      (active && detached && started->second.attempt != job->attempt))
    judge_.fail(name + " is not in the hands of the launcher as it should be");
  const bool gone = runner_gone_.contains(id);
  const bool stopping = active && job->state == JobState::kStopping;
  bool ours = stopping &&
              (detached || gone || job->outcome == core::Outcome::kLost ||
               job->outcome == core::Outcome::kTimeout || job->outcome == core::Outcome::kEscaped);
  if (!stopping) stopping_since_.erase(id);
  if (stopping && !ours) {
    // Its runner has the grace period and some time more.
    const seam::Nanoseconds since =
        stopping_since_.try_emplace(id, world_.clock_.monotonic()).first->second;
    ours = hands.stopped().contains(id) &&
           world_.clock_.monotonic() - since >=
               std::chrono::seconds(world_.options_.rules.grace_s) + engine::kStopPatience;
  }
  if (ours != hands.stopped().contains(id)) judge_.fail(name + " is to be stopped, or is not");
  if (ours) judge_.saw("stopped");
  if (job == nullptr || job->state == JobState::kEnded) {
    if (hands.watched().contains(id)) judge_.fail(name + " has ended, and is watched");
  } else if (!detached && !ours) {
    if (gone) judge_.fail(name + " goes on without its runner");
    if (!hands.watched().contains(id)) judge_.fail(name + " is not watched");
  }
}

// Every waiting job has a reason.
void Checker::check_waits(bool all) const {
  std::size_t looked = 0;
  for (const JobId id : world_.books_.pending()) {
    const core::SharedWait wait = world_.engine_->wait_of(id);
    if (!wait || wire::wait_text(*wait).empty())
      judge_.fail("job " + to_string(id) + " waits for nothing");
    const Entry& entry = *world_.books_.find(id);
    const bool early = !entry.in_line(world_.engine_->moment().now);
    const bool right =
        entry.held             ? wait->reason == core::Reason::kHeld
        : !entry.unmet.empty() ? wait->reason == core::Reason::kDependency
        : early
            ? wait->reason == core::Reason::kBegin || wait->reason == core::Reason::kRetry
            : wait->reason != core::Reason::kHeld && wait->reason != core::Reason::kDependency &&
                  wait->reason != core::Reason::kBegin && wait->reason != core::Reason::kRetry;
    if (!right)
      judge_.fail("job " + to_string(id) + " is told that it waits for " + wire::wait_text(*wait));
    if (!all && ++looked == 5) return;
  }
}

// ---- death, and thorough looks -----------------------------------------------------------------

void Checker::before_death() {
  judge_.saw("death");
  for (const JobId id : world_.books_.active())
    if (const JobState state = world_.books_.find(id)->state;
        state == JobState::kParking || state == JobState::kParked || state == JobState::kUnparking)
      judge_.saw("death while a job is " + std::string(to_string(state)));
  if (judge_.traces()) judge_.trace("the daemon dies");
  follow();
  forget_the_batch();
  asked_.clear();
  runner_gone_.clear();
  stopping_since_.clear();
}

void Checker::after_recovery() {
  for (const auto& [id, job] : world_.engine_->state().jobs())
    if (job.state == JobState::kStopping) stopping_since_[id] = world_.clock_.monotonic();
  follow();  // a commit may have reached the disk and failed nevertheless
  if (!world_.engine_->settled()) {
    old_ = true;
    return;
  }
  audit();
}

void Checker::before_start(const Life& life) const {
  const std::string name =
      "attempt " + std::to_string(life.attempt) + " of job " + to_string(life.job);
  const Entry* entry = world_.books_.find(life.job);
  if (entry == nullptr || !entry->active()) judge_.fail(name + " runs without a grant");
  if (entry->attempt != life.attempt) judge_.fail(name + " runs, and is over");
  if (entry->grant != life.cards) judge_.fail(name + " runs on another grant");
  if (!entry->spec->detached) return;
  for (const auto& [hash, data] : People::blobs(*entry->spec))
    if (const Result<std::string> kept = world_.disk_.load_blob(hash); !kept || *kept != data)
      judge_.fail(name + " runs, and its environment or script was lost");
}

void Checker::before_return(const Life& life) const {
  const Entry* entry = world_.books_.find(life.job);
  if (entry == nullptr || entry->attempt != life.attempt || entry->state != JobState::kUnparking ||
      entry->away())
    judge_.fail("job " + to_string(life.job) + " comes back before its bytes are granted");
}

// What programs really hold, parked ones included, is what they were granted and no more than there
// is; a parked program holds nothing on the card.
void Checker::check_memory() const {
  std::map<std::string, std::uint64_t> sums;
  for (const auto& [key, life] : world_.lives_.all()) {
    if (!life.program.lives()) continue;
    const std::string name = "job " + to_string(life.job);
    const Entry* entry = world_.books_.find(life.job);
    if (entry == nullptr || !entry->active() || entry->attempt != life.attempt)
      judge_.fail(name + " runs without a grant");
    if (entry->state == JobState::kParked && life.memory.stage() != Memory::Stage::kAway)
      judge_.fail(name + " is parked, and its program is there");
    const std::vector<core::GrantedCard> granted = entry->held_now();
    for (std::size_t i = 0; i < granted.size(); ++i) {
      const Bytes held = life.memory.held()[i];
      if (held > granted[i].bytes) judge_.fail(name + " holds more than it was granted");
      sums[granted[i].uuid] += held.count();
    }
  }
  for (const core::PoolCard& card : world_.cards_.now().cards)
    if (sums[card.card.uuid] + sum(card.claimed).count() > card.card.capacity.count())
      judge_.fail("card " + std::to_string(card.card.index) + ": programs hold more than it has");
}

void Checker::after_step() {
  check_memory();
  if (judge_.step() % kAuditEvery == 0 && world_.engine_ && world_.engine_->settled()) audit();
}

void Checker::audit() {
  judge_.saw("audit");
  const core::State& state = world_.engine_->state();
  if (follower_ != state) judge_.fail("what the log says is not what the engine believes");
  world_.books_.forget_unless([&](JobId id) { return state.find(id) != nullptr; });
  world_.books_.audit();
  world_.lives_.sweep();
  for (const auto& [id, entry] : world_.books_.jobs()) {
    check_same(id);
    if (world_.inputs_.empty()) check_launcher(id);
  }
  if (state.jobs().size() != world_.books_.jobs().size())
    judge_.fail("the engine has other jobs than the log");
  audit_indexes();
  check_waits(true);
}

void Checker::audit_indexes() const {
  const core::State& state = world_.engine_->state();
  const Books& books = world_.books_;
  judge_.require(state.active() == books.active(), "others hold grants than the log says");
  std::size_t in_line = 0;
  for (const JobId id : books.pending()) {
    const Entry& entry = *books.find(id);
    if (entry.held || !entry.unmet.empty()) continue;
    ++in_line;
    const auto queue = state.pending().queues().find({entry.priority, entry.spec->user});
    judge_.require(queue != state.pending().queues().end() && queue->second.contains(id),
                   "a job that should be in the queue is not");
  }
  judge_.require(state.pending().size() == in_line, "a job is in the queue that should not be");
  std::map<std::string, std::uint64_t> disk;
  for (const auto& [id, job] : state.jobs())
    if (job.state == JobState::kEnded && job.exit && job.exit->log_bytes)
      disk[job.spec->user] += job.exit->log_bytes->count();
  for (const auto& [id, entry] : books.jobs()) {
    const std::string& name = entry.spec->user;
    const UserSums sums = books.user(name);
    judge_.require(
        state.held_by(name) == core::Held{sums.cards, Bytes::from_bytes(sums.bytes), sums.running},
        "a user has more or less than the log says");
    judge_.require(state.unfinished_of(name) == sums.unfinished,
                   "a user has more or fewer jobs than the log says");
    judge_.require(state.disk_of(name).count() == disk[name],
                   "the logs of a user take another number of bytes than was said");
  }
}

}  // namespace mete::sim
