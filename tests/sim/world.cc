// SPDX-License-Identifier: Apache-2.0
// See world.h; daemon.cc has the daemon's side. A step draws one of many actions by weight; an
// action changes processes, cards, clocks or the disk, or queues an input for the daemon. In the
// end everything that goes wrong by chance is switched off, and the queue has to drain.
#include "tests/sim/world.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tests/sim/checker.h"

namespace mete::sim {

using core::JobId;
using core::JobState;
using std::chrono::milliseconds;

namespace {

std::map<std::string, Bytes> capacities(const core::Pool& pool) {
  std::map<std::string, Bytes> list;
  for (const core::PoolCard& card : pool.cards) list[card.card.uuid] = card.card.capacity;
  return list;
}

engine::Options some_options(Dice& dice) {
  engine::Options options;
  options.policy = static_cast<core::Policy>(dice.below(3));
  options.snapshot_every = dice.between(1, 300);
  options.rules.half_life_s = dice.percent(50) ? 7 * 86'400 : dice.between(60, 7'200);
  options.rules.starve_after_s = dice.percent(50) ? 86'400 : dice.between(30, 600);
  if (dice.percent(60)) options.rules.cpus = dice.small(2, 8);
  options.rules.retry_pause_s = dice.between(1, 10);
  options.rules.ended_kept = dice.between(10, 60);
  options.rules.grace_s = dice.between(2, 30);
  options.rules.park_min_run_s = dice.between(0, 10);
  options.rules.park_patience_s = dice.between(1, 30);
  options.rules.park_retry_s = dice.between(1, 60);
  options.rules.idle_park_s = 1;
  if (dice.percent(50)) options.rules.idle_warn_s = 1;
  if (dice.percent(50)) options.rules.idle_notify_s = 1;
  if (dice.percent(30)) options.rules.idle_stop_s = 1;
  return options;
}

}  // namespace

World::World(Judge& judge)
    : judge_(judge),
      dice_(judge.seed()),
      cards_(dice_),
      lives_(dice_, clock_, judge),
      parkers_(dice_, lives_, judge),
      hands_(dice_, clock_, lives_, judge),
      options_(some_options(dice_)),
      books_(judge, lives_, options_.rules, capacities(cards_.now())),
      people_(dice_, cards_, clock_, books_),
      checker_(std::make_unique<Checker>(judge, *this)) {
  crowd_ = dice_.between(10, 100);
  people_.change_customs();
  lives_.daemon = [this] { return daemon_; };
  lives_.before_start = [this](const Life& life) { checker_->before_start(life); };
  hands_.before_act = [this] {
    if (disk_.queued() != 0) judge_.fail("acted before the commit");
    seam_is_called();
  };
  hands_.runner_lives = [this](core::ProcessRef process) { return runner_lives(process); };
  hands_.end_runner = [this](JobId id) {
    for (const auto& runner : runners_) {
      if (!runner->alive || runner->job != id) continue;
      if (runner->deaf) judge_.saw("runner that did not end its job");
      give_up(*runner);
    }
  };
  hands_.others_agree = [this](JobId id, const std::vector<core::GrantedCard>& wanted) {
    return others_agree(id, wanted);
  };
  hands_.before_less = [this](JobId id, const std::vector<core::GrantedCard>& cards) {
    const core::Job* job = engine_->state().find(id);
    if (disk_.queued() != 0 || job == nullptr || core::held_now(*job) != cards)
      judge_.fail("job " + to_string(id) + " gives to others what it still has on disk");
  };
  parkers_.seen = [this](JobId id) {
    return engine_ && engine_->settled() ? engine_->state().find(id) : nullptr;
  };
  parkers_.ask = [this](core::Input input) {
    if (dice_.percent(5)) tell(input);  // it arrives twice
    return ask(std::move(input));
  };
  parkers_.parent_lives = [this](const Life& life) {
    const Entry* entry = books_.find(life.job);
    return entry != nullptr && entry->attempt == life.attempt && parent_lives(*entry);
  };
  parkers_.before_return = [this](const Life& life) { checker_->before_return(life); };
  disk_.seam = [this] { seam_is_called(); };
  start_daemon();
}

World::~World() = default;

void World::step() {
  judge_.begin_step();
  time_passes();
  struct Chance {
    unsigned weight;
    Action action;
  };
  static constexpr std::array<Chance, 21> kChances = {{
      {80, &World::somebody_runs},        {220, &World::somebody_submits},
      {70, &World::somebody_parks},       {63, &World::programs_use_memory},
      {100, &World::somebody_changes},    {24, &World::an_admin_orders},
      {160, &World::a_runner_acts},       {310, &World::keepers_act},
      {14, &World::a_runner_dies},        {8, &World::a_keeper_dies},
      {16, &World::a_program_ends},       {70, &World::cards_change},
      {4, &World::a_clock_is_set},        {12, &World::disk_trouble},
      {80, &World::daemon_looks},         {160, &World::news_arrive},
      {599, &World::daemon_turns},        {3, &World::daemon_is_killed},
      {4, &World::daemon_will_be_killed}, {2, &World::daemon_restarts_cleanly},
      {1, &World::machine_reboots},
  }};
  std::uint64_t roll = dice_.below(2000);
  for (const Chance& chance : kChances) {
    if (roll < chance.weight) {
      (this->*chance.action)();
      break;
    }
    roll -= chance.weight;
  }
  parkers_.some_act();
  checker_->after_step();
  forget_the_dead();
}

void World::time_passes() {
  clock_.advance(milliseconds(dice_.percent(3) ? dice_.below(8'000) : dice_.below(200)));
  lives_.time_passes();
  if (disk_is_full_ && dice_.percent(3)) {
    disk_is_full_ = false;
    disk_.set_room();
  }
}

// ---- a quiet world -----------------------------------------------------------------------------

bool World::drains() {
  quiet_ = lives_.quiet = true;
  cards_.become_quiet();
  disk_is_full_ = false;
  disk_.set_room();
  kill_in_.reset();
  const std::size_t jobs = books_.pending().size() + books_.active().size();
  const std::size_t bound = 500 + 60 * (runners_.size() + jobs);
  bool drained = false;
  for (std::size_t round = 0; round < bound && !drained; ++round) {
    judge_.begin_step();
    quiet_round(round);
    checker_->after_step();
    forget_the_dead();
    drained = engine_ && inputs_.empty() && runners_.empty() && !lives_.somebody_lives() &&
              books_.pending().empty() && books_.active().empty();
  }
  quiet_ = lives_.quiet = false;
  people_.change_customs();
  return drained;
}

std::string World::left() const {
  std::string text;
  for (const auto& [id, entry] : books_.jobs())
    if (entry.state != JobState::kEnded)
      text += (text.empty() ? "job " : ", ") + to_string(id) + " " +
              std::string(to_string(entry.state)) + (entry.wants_back ? " (wants back)" : "");
  return text.empty() ? "processes" : text;
}

// The daemon takes a turn only when it would by itself: something arrived, or its time has come.
void World::quiet_round(std::size_t round) {
  clock_.advance(milliseconds(dice_.below(500)));
  lives_.time_passes();
  lives_.all_keepers_act();
  if (dice_.percent(30)) lives_.all_programs_end();
  if (dice_.percent(30)) parkers_.programs_use_memory();
  if (!engine_) start_daemon();
  if (!engine_) return;
  if (round % 50 == 0)
    for (core::Input& order : people_.everything_is_lifted()) tell(std::move(order));
  if (round % 10 == 0) daemon_looks();
  hear(true);
  for (const auto& runner : runners_)
    if (engine_->settled()) act(*runner);
  parkers_.all_act();
  const std::optional<WallTime> next = engine_->next_change();
  if (!inputs_.empty() || engine_->again() || (next && *next <= clock_.wall())) {
    turn();
  } else if (next && !lives_.somebody_acts()) {
    clock_.advance(milliseconds(next->ms - clock_.wall().ms));
  }
}

// ---- people ------------------------------------------------------------------------------------

engine::Asked& World::tell(core::Input input) {
  inputs_.emplace_back();
  inputs_.back().input = std::move(input);
  return inputs_.back();
}

std::uint64_t World::ask(core::Input input) {
  return tell(std::move(input)).ticket = ++last_ticket_;
}

bool World::crowded() const { return books_.pending().size() + books_.active().size() >= crowd_; }

void World::somebody_runs() {
  if (!engine_ || crowded()) return;
  auto runner = std::make_unique<Runner>();
  runner->self = lives_.new_process();
  runner->deaf = dice_.percent(10);
  runner->wants = people_.a_run(runner->self);
  runner->ticket = ask(runner->wants);
  runners_.push_back(std::move(runner));
}

void World::somebody_submits() {
  if (!engine_ || crowded()) return;
  core::Submit submit = people_.a_job();
  auto blobs = People::blobs(submit.spec);
  (void)ask(std::move(submit));
  inputs_.back().blobs = std::move(blobs);
}

void World::somebody_changes() {
  if (engine_) (void)ask(people_.a_change());
}

void World::somebody_parks() {
  if (engine_) (void)ask(people_.a_park());
}

void World::an_admin_orders() {
  if (engine_) (void)ask(people_.an_order());
}

// ---- mete run ----------------------------------------------------------------------------------

void World::a_runner_acts() {
  if (!engine_ || !engine_->settled() || runners_.empty()) return;
  act(*dice_.pick(runners_));
}

void World::act(Runner& runner) {
  if (!runner.alive || runner.ticket != 0) return;
  if (!runner.job) {
    runner.ticket = ask(runner.wants);  // the daemon died before it answered
    return;
  }
  const core::Job* job = engine_->state().find(*runner.job);
  const std::uint32_t uid = runner.wants.spec.uid;
  if (job == nullptr || job->state == JobState::kEnded) {
    runner.alive = false;
    return;
  }
  if (job->state == JobState::kPending) {
    if (!quiet_ && dice_.percent(2)) give_up(runner);
    return;
  }
  if (job->state == JobState::kStopping && runner.deaf) return;
  Life& life = lives_.life(job->id, 1);
  Program& program = life.program;
  if (job->state == JobState::kStopping && program.stage == Program::Stage::kRuns) {
    lives_.let_die(program);
  } else if (job->state == JobState::kStarting && program.stage == Program::Stage::kNone &&
             !life.exit) {
    start_program(runner, *job);
  } else if (!program.lives()) {
    if (job->state == JobState::kRunning && program.stage == Program::Stage::kNone)
      judge_.fail("job " + to_string(job->id) + " runs, and its runner never started it");
    if (!life.exit) life.exit = program.exit;
    core::Ended ended{job->id, uid, *life.exit};
    if (program.ref.pid != 0) ended.program = program.ref;
    runner.ticket = ask(std::move(ended));
  } else if (dice_.percent(job->state == JobState::kStarting ? 50 : 5)) {
    runner.ticket = ask(core::Started{job->id, uid, program.ref});  // maybe repeated
  }
}

void World::start_program(Runner& runner, const core::Job& job) {
  Life& life = lives_.life(job.id, 1);
  if (dice_.percent(8)) {
    life.exit.emplace();
    life.exit->not_started = true;
    runner.ticket = ask(core::Ended{job.id, runner.wants.spec.uid, *life.exit});
    return;
  }
  lives_.start_program(life, job.spec, job.grant);
  // A start is reported after a moment, or together with the end.
  if (dice_.percent(50))
    runner.ticket = ask(core::Started{job.id, runner.wants.spec.uid, life.program.ref, 50});
}

void World::give_up(Runner& runner) {
  runner.alive = false;
  runner.ticket = 0;
}

void World::a_runner_dies() {
  if (runners_.empty()) return;
  Runner& runner = *dice_.pick(runners_);
  give_up(runner);
  if (runner.job && dice_.percent(40)) lives_.kill(*runner.job, 1);
}

bool World::runner_lives(core::ProcessRef process) const {
  return std::any_of(runners_.begin(), runners_.end(),
                     [&](const auto& runner) { return runner->alive && runner->self == process; });
}

bool World::parent_lives(const Entry& entry) {
  if (entry.spec->detached) {
    const Life* life = lives_.find(entry.id, entry.attempt);
    return life != nullptr && lives_.keeper_of(*life) != nullptr;
  }
  return std::any_of(runners_.begin(), runners_.end(),
                     [&](const auto& runner) { return runner->alive && runner->job == entry.id; });
}

void World::forget_the_dead() {
  std::erase_if(runners_, [](const auto& runner) { return !runner->alive; });
}

// ---- the machine -------------------------------------------------------------------------------

// What the other daemons know of our jobs: the last report, or the log of a dead daemon.
Reserved World::known_to_others() const {
  Reserved ours;
  for (const JobId id : books_.active()) ours[id] = books_.find(id)->held_now();
  for (const auto& [id, cards] : hands_.reserved()) ours[id] = cards;
  return ours;
}

void World::cards_change() { cards_.change(known_to_others()); }

bool World::others_agree(JobId id, const std::vector<core::GrantedCard>& wanted) {
  Reserved ours = known_to_others();
  const auto mine = ours.find(id);
  if (mine != ours.end()) {
    bool all_the_time = mine->second.size() == wanted.size();
    for (std::size_t i = 0; i < wanted.size() && all_the_time; ++i)
      all_the_time =
          wanted[i].bytes <= mine->second[i].bytes && (!wanted[i].whole || mine->second[i].whole);
    if (all_the_time) return true;
    ours.erase(mine);
  }
  if (!quiet_ && dice_.percent(2)) return false;  // and given back unseen
  return cards_.others_agree(ours, wanted);
}

void World::a_clock_is_set() {
  const std::uint64_t most = dice_.percent(70) ? 60'000 : 86'400'000;
  const auto by =
      static_cast<std::int64_t>(dice_.below(2 * most)) - static_cast<std::int64_t>(most);
  clock_.set_wall(milliseconds(by));
}

void World::disk_trouble() {
  switch (dice_.below(4)) {
    case 0:
    case 1:
      disk_is_full_ = true;
      disk_.set_full(dice_.below(6));
      break;
    case 2:
      disk_.fail_commit(dice_.between(1, 3), Error::exhausted("the disk is full"));
      break;
    default:
      disk_.fail_commit(
          dice_.between(1, 3), Error::io("input/output error"),
          dice_.percent(50) ? tests::FaultyStore::Left::kAll : tests::FaultyStore::Left::kNothing);
  }
}

}  // namespace mete::sim
