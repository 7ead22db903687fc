// SPDX-License-Identifier: Apache-2.0
// See eyes.h. machine.h turns a reading into the machine, judge.h assesses its jobs; this file
// collects their inputs.
#include "daemon/eyes.h"

#include <utility>

#include "daemon/log.h"
#include "daemon/machine.h"

namespace mete::daemon {

Eyes::Eyes(EyesSettings settings, seam::Loop loop, seam::Clock& clock, const core::State& state,
           ClaimsKeeper& claims, Movers& movers, Callbacks callbacks)
    : settings_(std::move(settings)),
      clock_(clock),
      state_(state),
      claims_(claims),
      movers_(movers),
      callbacks_(std::move(callbacks)),
      judge_(settings_.config.escape_stop.value && settings_.may_stop),
      contexts_(settings_.cost_files),
      cards_(settings_.helper, std::move(loop), clock, [this] { look(); }) {}

void Eyes::set_config(const config::Config& config) {
  settings_.config = config;
  judge_.set_stop(config.escape_stop.value && settings_.may_stop);
}

void Eyes::tick() {
  if (is_stale()) look();
}

std::vector<node::JobHold> Eyes::holds() const {
  std::vector<node::JobHold> holds;
  for (const core::JobId id : state_.active()) {
    const core::Job& job = *state_.find(id);
    node::JobHold& hold = holds.emplace_back(node::JobHold{id, job.runner, job.spec->uid, {}});
    for (const core::GrantedCard& card : job.grant) hold.cards.push_back(card.uuid);
  }
  for (const core::Job* job : state_.ended_after(WallTime{clock_.wall().ms - kJustEndedMs}))
    holds.push_back({job->id, job->runner, job->spec->uid, {}});
  return holds;
}

std::vector<Judge::Subject> Eyes::subjects() const {
  std::vector<Judge::Subject> jobs;
  for (const core::JobId id : state_.active()) {
    const core::Job& job = *state_.find(id);
    jobs.push_back({id, job.grant, job.state == core::JobState::kRunning, job.idle.has_value(),
                    core::parks_itself(*job.spec)});
  }
  return jobs;
}

WallTime Eyes::wall_of(seam::Nanoseconds moment) const {
  const auto ago = std::chrono::duration_cast<seam::Milliseconds>(clock_.monotonic() - moment);
  return WallTime{clock_.wall().ms - ago.count()};
}

void Eyes::look() {
  const std::optional<node::CardSnapshot>& last = cards_.last();
  const std::optional<Error>& trouble = cards_.trouble();
  if (!last && !trouble) return;
  MachineInputs inputs;
  inputs.snapshot = last ? &*last : nullptr;
  if (trouble) inputs.trouble = in_one_line(*trouble);
  if (!last) inputs.unread = trouble;
  inputs.capacities = capacities_;
  if (!trouble && !claims_.trouble().empty())
    inputs.trouble = "other daemons' claims: " + claims_.trouble();
  inputs.stale = is_stale();
  inputs.jobs = holds();
  inputs.claims = claims_.others();
  inputs.reserve = settings_.config.reserve.value;
  inputs.granted_here = [this](const seam::CardReading& card) {
    return config::allows(settings_.config, card.index, card.uuid);
  };
  if (last) inputs.contexts = contexts_.of(*last, clock_.monotonic());
  if (last) movers_.see_cards(last->cards.size());
  inputs.parking = settings_.parking;
  if (state_.pending().size() > 0) movers_.make_room();
  inputs.movers = movers_.pids();
  inputs.arena = movers_.arena();
  MachineSeen seen = look_at(inputs, owners_);
  owners_ = std::move(seen.owners);
  capacities_ = std::move(seen.capacities);
  if (last) {
    Judge::Verdicts verdicts = judge_.see(*last, wall_of(last->at), owners_, std::move(seen.loads),
                                          subjects(), inputs.stale);
    seen.machine.idle_since = std::move(verdicts.idle_since);
    for (core::Input& input : verdicts.inputs) callbacks_.tell(std::move(input));
  }
  callbacks_.see(std::move(seen.machine));
}

}  // namespace mete::daemon
