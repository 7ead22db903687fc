// SPDX-License-Identifier: Apache-2.0
// See parkers.h. act() reports the end of an order, sends a report that is not answered yet, or
// looks at the job in the daemon's state and compares what is wanted with the state of the memory:
// it orders the program to leave or to return, or changes its limits.
#include "tests/sim/parkers.h"

#include <algorithm>
#include <utility>

#include "tests/sim/planted.h"

namespace mete::sim {

using core::JobState;
using Stage = Memory::Stage;

namespace {

bool parks_at_all(const Life& life) { return core::is_parkable(*life.spec); }

}  // namespace

void Parkers::some_act() {
  for (Life* life : lives_.running())
    if (dice_.percent(15)) act(*life);
}

void Parkers::all_act() {
  for (Life* life : lives_.running()) act(*life);
}

void Parkers::programs_use_memory() {
  std::vector<Life*> running = lives_.running();
  if (!running.empty()) dice_.pick(running)->memory.use(dice_, judge_);
}

void Parkers::answered(std::uint64_t ticket, bool busy) {
  const auto found = tickets_.find(ticket);
  if (found == tickets_.end()) return;
  const AttemptKey key = found->second;
  tickets_.erase(found);
  if (lives_.find(key.first, key.second) == nullptr) return;
  Life& life = lives_.life(key.first, key.second);
  life.parker.ticket = 0;
  if (!busy) life.parker.unsent.reset();
  // The answer has the state of the job.
  if (parent_lives(life)) look(life);
}

void Parkers::daemon_died() {
  for (const auto& [ticket, key] : std::exchange(tickets_, {}))
    if (lives_.find(key.first, key.second) != nullptr)
      lives_.life(key.first, key.second).parker.ticket = 0;
}

// ---- parking -----------------------------------------------------------------------------------

void Parkers::act(Life& life) {
  if (life.cards.empty() || life.parker.ticket != 0 || !parent_lives(life)) return;
  if (const std::optional<Memory::End> end = life.memory.take_end())
    report(life, end->why, end->standing);
  if (life.parker.unsent) {
    send(life);
    return;
  }
  look(life);
  if (life.parker.ticket != 0 || !life.memory.at_rest()) return;
  if (life.memory.stage() == Stage::kHere && life.memory.obstacle() != life.parker.obstacle &&
      parks_at_all(life)) {
    life.parker.obstacle = life.memory.obstacle();
    report(life, life.parker.obstacle, !life.parker.obstacle.empty());
    send(life);
  } else if (life.memory.stage() == Stage::kHere && life.memory.grows()) {
    look_at_growth(life);
  }
}

void Parkers::look(Life& life) {
  const core::Job* job = seen(life.job);
  if (job == nullptr || job->attempt != life.attempt) return;
  if (life.memory.stage() == Stage::kHere && life.memory.grows()) grow(life, *job);
  if (life.memory.at_rest() && life.parker.ticket == 0) follow(life, *job);
}

// Compares the wanted and the real state anew each time.
void Parkers::follow(Life& life, const core::Job& job) {
  Memory& memory = life.memory;
  const bool away = memory.stage() == Stage::kAway;
  if (job.state == JobState::kParking && !away) {
    life.parker.unsent.reset();  // belonged to an earlier order
    memory.leave(lives_.now(), job.park->deep, dice_);
  } else if (away && (job.state == JobState::kUnparking ||
                      (planted("back-before-told") && job.state == JobState::kParked))) {
    life.parker.unsent.reset();
    before_return(life);
    memory.come_back(lives_.now(), dice_);
  } else if ((job.state == JobState::kParking && away) ||
             (job.state == JobState::kRunning && away) ||
             (job.state == JobState::kUnparking && !away) ||
             (job.state == JobState::kParked && !away)) {
    report(life);
  } else if (job.state == JobState::kParked && job.park->cause == core::ParkCause::kIdle &&
             !job.park->wants_back && dice_.percent(10)) {
    report(life);
    life.parker.unsent->wakes = true;
    judge_.saw("a program wakes");
  }
}

void Parkers::report(Life& life, std::string why, bool standing) {
  core::ParkReport report{life.job, life.spec->uid, life.memory.stage() == Stage::kAway};
  if (report.parked) {
    report.held = life.memory.held();
    report.moved = life.memory.moved();
  }
  report.why = std::move(why);
  report.standing = standing;
  life.parker.unsent = std::move(report);
}

void Parkers::send(Life& life) {
  if (seen(life.job) == nullptr) return;  // no daemon answers: later
  life.parker.ticket = ask(*life.parker.unsent);
  tickets_[life.parker.ticket] = {life.job, life.attempt};
  judge_.saw("a report on parking");
}

// ---- growing -----------------------------------------------------------------------------------

void Parkers::tell_growth(Life& life, std::vector<Bytes> wanted) {
  if (seen(life.job) == nullptr) return;
  life.parker.ticket = ask(core::Grow{life.job, life.spec->uid, std::move(wanted)});
  tickets_[life.parker.ticket] = {life.job, life.attempt};
}

// More is granted at once; less only as far as it is unused, and when it is asked for.
void Parkers::grow(Life& life, const core::Job& job) {
  Memory& memory = life.memory;
  for (std::size_t i = 0; i < job.grant.size(); ++i) memory.allow(i, job.grant[i].bytes);
  if (job.growth != core::Growth::kAsked || life.parker.ticket != 0) return;
  if (job.state != JobState::kRunning) return;
  std::vector<Bytes> left;
  for (std::size_t i = 0; i < job.grant.size(); ++i)
    left.push_back(memory.take_back(i, memory.cards()[i].least));
  judge_.saw("growth given back when asked");
  tell_growth(life, std::move(left));
}

void Parkers::look_at_growth(Life& life) {
  Memory& memory = life.memory;
  const bool more = dice_.percent(60);
  std::vector<Bytes> wanted;
  for (std::size_t i = 0; i < memory.cards().size(); ++i) {
    const core::GrantedCard& card = memory.cards()[i];
    const Bytes step = Bytes::from_mib(2 * dice_.between(1, 8'000));
    wanted.push_back(more ? memory.allowed()[i] + step
                          : memory.take_back(i, std::max(card.least, memory.held()[i])));
  }
  tell_growth(life, std::move(wanted));
}

}  // namespace mete::sim
