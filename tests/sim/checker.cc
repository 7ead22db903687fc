// SPDX-License-Identifier: Apache-2.0
// See checker.h.
#include "tests/sim/checker.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/sim/where.h"
#include "wire/job.h"

namespace mete::sim {

using core::JobId;
using core::JobState;

namespace {

// Comparing a thousand jobs takes longer than a turn.
constexpr std::uint64_t kCompareEvery = 16;

bool holds(const core::Job& job) {
  return job.state != JobState::kPending && job.state != JobState::kEnded;
}

Reserved held_by(const core::State& state) {
  Reserved held;
  for (const auto& [id, job] : state.jobs())
    if (holds(job)) held.emplace(id, job.grant);
  return held;
}

// A share on any one card, and nothing else said: for these the check below is easy to trust.
std::optional<Bytes> plain_share(const core::Request& request) {
  core::Request plain;
  plain.gpu = request.gpu;
  if (request != plain || !request.gpu) return std::nullopt;
  const auto* size = std::get_if<core::Size>(&request.gpu->memory);
  if (size == nullptr || request.gpu->cards.kind != core::CardCount::Kind::kOne)
    return std::nullopt;
  return size->bytes;
}

// How much others would have to give up before the share fits anywhere. nullopt: on no card, ever.
std::optional<std::uint64_t> missing(const core::Pool& machine, const Reserved& held, Bytes share) {
  std::optional<std::uint64_t> least;
  for (const core::PoolCard& card : machine.cards) {
    const std::uint64_t capacity = card.card.capacity.count();
    if (card.lost || card.drained || card.stale || !card.unusable.empty()) continue;
    if (share.count() > capacity) continue;
    const OnCard on = on_card(held, card.card.uuid);
    const std::uint64_t promised = on.bytes.count() + sum(card.claimed).count();
    const std::uint64_t used = promised + sum(card.foreign).count();
    std::uint64_t here = used + share.count() - std::min(used + share.count(), capacity);
    if (on.whole != 0) here = promised;              // the one who has it must go
    if (card.one_process && used != 0) here = used;  // all must go
    least = std::min(least.value_or(here), here);
  }
  return least;
}

}  // namespace

void Checker::fail(const std::string& what) const {
  report_failure(what.c_str(), seed_, step_);
  std::exit(1);
}

// ---- the log -----------------------------------------------------------------------------------

void Checker::follow(const World& world) {
  const auto& committed = world.store_.committed();
  for (; followed_ < committed.size(); ++followed_) {
    const seam::StoredEvent& event = committed[followed_];
    if (event.seq != followed_ + 1) fail("event " + std::to_string(event.seq) + " after a gap");
    const Result<core::Happened> what = wire::decode_event(event.type, event.data);
    if (!what) fail("event " + std::to_string(event.seq) + ": " + what.error().message);
    follower_.apply({event.seq, {event.at_ms}, *what});
    ++counts_[event.type];
  }
}

// ---- turns -------------------------------------------------------------------------------------

void Checker::before_turn(const World& world) {
  holding_.clear();
  for (const auto& [id, job] : world.engine_->state().jobs())
    if (holds(job)) holding_.insert(id);
}

void Checker::after_turn(const World& world, const std::vector<engine::Asked>& inputs,
                         const Result<std::vector<engine::Answer>>& answers) {
  ++counts_["turn"];
  for (const engine::Asked& asked : inputs) {
    if (asked.ticket != 0) asked_.emplace(asked.ticket, asked.input);
    if (const auto* gone = std::get_if<core::RunnerGone>(&asked.input))
      runner_gone_.insert(gone->id);
  }
  if (!answers) {
    ++counts_["failed commit"];
    return;
  }
  follow(world);
  check_answers(world, *answers);
  const std::set<JobId> fresh = check_grants(world);
  const bool hurried = std::any_of(inputs.begin(), inputs.end(), [](const engine::Asked& asked) {
    const auto* submit = std::get_if<core::Submit>(&asked.input);
    return submit != nullptr && !submit->wait;
  });
  // Who does not wait is placed in the middle of a turn, when there may have been less room.
  if (!hurried) check_first_in_line(world, fresh);
  if (!world.engine_->settled()) {
    ++counts_["unsettled turn"];
    return;
  }
  check_launcher(world);
  check_waits(world);
  if (counts_["turn"] % kCompareEvery == 0 && follower_ != world.engine_->state())
    fail("what the log says is not what the engine believes");
}

void Checker::check_answers(const World& world, const std::vector<engine::Answer>& answers) {
  for (const engine::Answer& answer : answers) {
    const auto found = asked_.find(answer.ticket);
    if (found == asked_.end()) fail("ticket " + std::to_string(answer.ticket) + " answered twice");
    const core::Input input = found->second;
    asked_.erase(found);
    if (!answer.result) {
      ++counts_["refused"];
      continue;
    }
    const core::Job* job = follower_.find(*answer.result);
    if (!world.engine_->settled()) fail("answered before the commit");
    if (const auto* submit = std::get_if<core::Submit>(&input)) {
      if (answer.result->number <= last_id_) fail("a job's number was given twice");
      last_id_ = answer.result->number;
      if (job == nullptr) fail("a job was acknowledged and is not in the log");
      if (job->spec != submit->spec) fail("a job is not what was asked for");
      if (!submit->wait && job->state == JobState::kPending) fail("--no-wait waits");
    } else if (std::holds_alternative<core::Ended>(input)) {
      if (job != nullptr && job->state != JobState::kEnded)
        fail("an end was acknowledged, and is none");
    } else if (std::holds_alternative<core::Cancel>(input)) {
      if (job != nullptr && job->state != JobState::kEnded && job->state != JobState::kStopping)
        fail("a cancel was acknowledged, and nothing came of it");
    }
  }
  if (world.engine_->settled() && !asked_.empty()) fail("somebody was not answered");
}

std::set<JobId> Checker::check_grants(const World& world) {
  const Reserved held = held_by(world.engine_->state());
  const core::Pool& seen = world.engine_->machine();
  std::set<JobId> fresh;
  std::set<std::string> fresh_cards;
  for (const auto& [id, cards] : held) {
    if (holding_.contains(id)) continue;
    fresh.insert(id);
    for (const core::GrantedCard& card : cards) fresh_cards.insert(card.uuid);
  }
  for (const core::PoolCard& card : seen.cards) {
    const std::string name = "card " + std::to_string(card.card.index);
    const OnCard on = on_card(held, card.card.uuid);
    if (on.bytes > card.card.capacity) fail(name + ": more is granted than there is");
    if (on.whole != 0 && on.holders != 1) fail(name + ": held whole, and by others too");
    if (!fresh_cards.contains(card.card.uuid)) continue;
    if (card.lost || card.drained || card.stale || !card.unusable.empty())
      fail(name + ": granted while it was not to be used");
    if (on.bytes + sum(card.claimed) + sum(card.foreign) > card.card.capacity)
      fail(name + ": granted what others were seen to hold");
    if (card.one_process && on.holders != 1) fail(name + ": for one process, and two hold it");
    const auto really = std::find_if(
        world.cards_.now().cards.begin(), world.cards_.now().cards.end(),
        [&card](const core::PoolCard& each) { return each.card.uuid == card.card.uuid; });
    if (on.bytes + sum(really->claimed) > card.card.capacity)
      fail(name + ": granted what another daemon had been promised");
    if (on.whole != 0 && !really->claimed.empty())
      fail(name + ": granted whole while another daemon has a share");
  }
  return fresh;
}

// Whoever came later may take only what does not keep the first in line waiting any longer.
void Checker::check_first_in_line(const World& world, const std::set<JobId>& fresh) {
  const core::State& state = world.engine_->state();
  const auto first = std::find_if(state.jobs().begin(), state.jobs().end(), [](const auto& each) {
    return each.second.state == JobState::kPending;
  });
  if (first == state.jobs().end() || fresh.empty() || *fresh.rbegin() < first->first) return;
  const std::optional<Bytes> share = plain_share(first->second.spec.request);
  if (!share) return;
  const core::Pool& seen = world.engine_->machine();
  const Reserved with = held_by(state);
  Reserved without = with;
  std::erase_if(without, [&](const auto& each) {
    return fresh.contains(each.first) && each.first > first->first;
  });
  ++counts_["overtaken"];
  if (missing(seen, with, *share) > missing(seen, without, *share))
    fail("job " + to_string(first->first) + " is first in line, and was put further back");
}

void Checker::check_launcher(const World& world) {
  const core::State& state = world.engine_->state();
  if (world.launcher_.reserved() != held_by(state))
    fail("the other daemons were told of other grants than there are");
  for (const auto& [id, job] : state.jobs()) {
    const bool ours = job.state == JobState::kStopping &&
                      (job.outcome == core::Outcome::kLost || runner_gone_.contains(id));
    if (runner_gone_.contains(id) && !ours && job.state != JobState::kEnded)
      fail("job " + to_string(id) + " goes on without its runner");
    const auto stops = world.launcher_.stops().find(id);
    const int times = stops == world.launcher_.stops().end() ? 0 : stops->second;
    if (times != (ours ? 1 : 0))
      fail("job " + to_string(id) + " was to be stopped " + std::to_string(times) + " times");
    const bool watched = world.launcher_.watched().contains(id);
    if (watched && job.state == JobState::kEnded) fail("an ended job is watched");
    if (!watched && !ours && job.state != JobState::kEnded)
      fail("job " + to_string(id) + " is watched by nobody");
    counts_["stopped"] += ours ? 1 : 0;
  }
}

void Checker::check_waits(const World& world) const {
  for (const auto& [id, job] : world.engine_->state().jobs()) {
    const core::Wait* wait = world.engine_->wait_of(id);
    if ((wait != nullptr) != (job.state == JobState::kPending))
      fail("job " + to_string(id) + ": a reason to wait without waiting, or none");
    if (wait != nullptr && wait->text.empty()) fail("job " + to_string(id) + " waits for nothing");
  }
}

// ---- death -------------------------------------------------------------------------------------

void Checker::saved(const World& world) { follow(world); }

void Checker::before_death(const World& world) {
  ++counts_["death"];
  follow(world);
  asked_.clear();
  runner_gone_.clear();
}

void Checker::after_recovery(const World& world) {
  follow(world);  // a commit may have reached the disk and failed nevertheless
  if (follower_ != world.engine_->state()) fail("the daemon came back with another state");
  if (world.store_.queued() != 0) fail("recovery recorded something");
}

void Checker::after_step(const World& world) {
  for (const auto& runner : world.runners_) {
    if (!runner->program_lives()) continue;
    const core::Job* job = runner->job ? follower_.find(*runner->job) : nullptr;
    if (job == nullptr || !holds(*job))
      fail("a program of job " + to_string(*runner->job) + " runs without a grant");
    if (job->grant != runner->cards)
      fail("a program of job " + to_string(job->id) + " runs on another grant");
  }
}

}  // namespace mete::sim
