// SPDX-License-Identifier: Apache-2.0
// See machine.h. look_at() takes our movers out of the snapshot, lets node::attribute() divide the
// rest between jobs, strangers and other daemons' claims, and then goes card by card: the pool card
// that placement uses, the figures that users see, and the processes of jobs with loads and peaks.
#include "daemon/machine.h"

#include <algorithm>

namespace mete::daemon {

namespace {

constexpr Bytes kMoverBeside = Bytes::from_mib(128);
// Measured on an H200: 24 GiB of pinned memory cost 728 MiB of the card, charged to no process.
constexpr std::uint64_t kArenaTables = 32;

std::string why_unusable(const seam::CardReading& card) {
  if (card.mig == true) return "it is split into MIG slices";
  if (card.compute_mode == seam::ComputeMode::kProhibited) return "its compute mode is prohibited";
  if (!card.capacity()) return "the driver does not say how much memory it has";
  return "";
}

Bytes capacity_of(const seam::CardReading& card, const MachineInputs& inputs) {
  const auto before = inputs.capacities.find(card.uuid);
  const Bytes known = before == inputs.capacities.end() ? Bytes() : before->second;
  return card.capacity().value_or(known).minus(inputs.reserve);
}

// The reading of our mover, if it runs and the driver lists it with its memory.
const seam::ProcessReading* mover_on(const seam::CardReading& card, const MachineInputs& inputs) {
  const auto mover = inputs.movers.find(card.uuid);
  if (mover == inputs.movers.end() || !card.processes) return nullptr;
  for (const seam::ProcessReading& process : *card.processes)
    if (process.pid == mover->second && process.used) return &process;
  return nullptr;
}

// A mover's context, its copy buffers, and the tables through which the card reaches the arena.
Bytes mover_cost(const seam::CardReading& card, const MachineInputs& inputs) {
  const auto context = inputs.contexts.find(card.uuid);
  return (context == inputs.contexts.end() ? Bytes() : context->second) + kMoverBeside +
         Bytes::from_bytes(inputs.arena.count() / kArenaTables).round_down(core::kGranule);
}

// Our movers are neither jobs nor foreign processes.
node::CardSnapshot without_movers(const MachineInputs& inputs) {
  node::CardSnapshot snapshot = *inputs.snapshot;
  for (seam::CardReading& card : snapshot.cards) {
    const seam::ProcessReading* mover = mover_on(card, inputs);
    if (mover == nullptr) continue;
    if (card.used) {
      Bytes unlisted = *card.used;
      for (const seam::ProcessReading& process : *card.processes)
        unlisted = unlisted.minus(process.used.value_or(Bytes()));
      const Bytes more = mover_cost(card, inputs).minus(*mover->used);
      const Bytes its = *mover->used + std::min(unlisted, more);
      card.used = card.used->minus(its);
    }
    const pid_t pid = mover->pid;
    std::erase_if(*card.processes,
                  [pid](const seam::ProcessReading& process) { return process.pid == pid; });
  }
  return snapshot;
}

core::PoolCard pool_card(const seam::CardReading& card, const node::CardUse& use,
                         const MachineInputs& inputs) {
  core::PoolCard pool;
  pool.card = {
      card.index, card.uuid, card.type, capacity_of(card, inputs), card.total.value_or(Bytes()),
      card.name};
  pool.lost = card.state == seam::CardState::kLost;
  pool.unusable = pool.lost ? "" : why_unusable(card);
  if (pool.unusable.empty() && !inputs.granted_here(card))
    pool.unusable = "the configuration leaves it out";
  pool.one_process = card.compute_mode == seam::ComputeMode::kExclusiveProcess;
  pool.stale = inputs.stale;
  for (const node::HeldBy& held : use.outside)
    pool.foreign.push_back({held.who, held.bytes, {}, held.user, held.pid});
  for (const node::OtherClaim& other : inputs.claims)
    if (other.claim.uuid == card.uuid)
      pool.claimed.push_back({other.user + "'s mete", other.claim.bytes, {}, other.user});
  if (const auto cost = inputs.contexts.find(card.uuid); cost != inputs.contexts.end())
    pool.context = cost->second;
  if (inputs.parking) pool.mover = mover_cost(card, inputs);
  if (const seam::ProcessReading* mover = mover_on(card, inputs); mover != nullptr) {
    pool.mover = std::max(pool.mover, *mover->used);
    pool.mover_runs = true;
  }
  return pool;
}

std::optional<unsigned> utilisation_of(pid_t pid, const seam::CardReading& card) {
  if (card.processes)
    for (const seam::ProcessReading& process : *card.processes)
      if (process.pid == pid) return process.utilisation_pct;
  return std::nullopt;
}

serve::CardFigures figures_of(const seam::CardReading& card, const node::CardUse& use,
                              const MachineInputs& inputs) {
  serve::CardFigures figures;
  figures.sized = card.capacity().has_value();
  figures.used = card.used;
  figures.utilisation_pct = card.utilisation_pct;
  figures.temperature_c = card.temperature_c;
  figures.power_mw = card.power_mw;
  figures.power_limit_mw = card.power_limit_mw;
  figures.numa = card.numa;
  for (const seam::CardLink& link : card.links) figures.links.push_back({link.to, link.count});
  for (const node::ForeignProcess& process : use.foreign)
    figures.strangers.push_back(
        {process.pid, process.user, process.used, process.comm, utilisation_of(process.pid, card)});
  for (const node::OtherClaim& other : inputs.claims)
    if (other.claim.uuid == card.uuid) figures.strangers.push_back({{}, other.user});
  return figures;
}

const node::ProcessFacts* facts_of(pid_t pid, const node::CardSnapshot& snapshot) {
  const auto& all = snapshot.processes;  // by pid
  const auto found = std::lower_bound(
      all.begin(), all.end(), pid,
      [](const node::ProcessFacts& facts, pid_t wanted) { return facts.pid < wanted; });
  return found != all.end() && found->pid == pid ? &*found : nullptr;
}

// Bounded by the card's size: the user can write the meter's file.
void add_peaks(const node::ProcessFacts& facts, const seam::CardReading& card,
               std::map<std::string, Bytes>& peaks) {
  for (const node::MeterFacts::Charge& charge : facts.meter.charges)
    if (charge.uuid == card.uuid && card.total)
      peaks[card.uuid] = std::max(peaks[card.uuid], std::min(charge.peak, *card.total));
}

// Adds the processes of jobs on this card.
void add_processes(const seam::CardReading& card, const node::CardSnapshot& snapshot,
                   MachineSeen& seen) {
  if (!card.processes) return;
  for (const seam::ProcessReading& process : *card.processes) {
    const auto owner = seen.owners.find(process.pid);
    if (owner == seen.owners.end()) continue;
    seen.loads[owner->second].push_back(process.utilisation_pct);
    serve::JobProcess one;
    one.pid = process.pid;
    one.card = card.index;
    one.used = process.used;
    one.utilisation_pct = process.utilisation_pct;
    // The process may have ended between the reading and the look at it.
    if (const node::ProcessFacts* facts = facts_of(process.pid, snapshot)) {
      one.start_ticks = facts->start_ticks;
      one.parent = facts->parent;
      one.name = facts->comm;
      add_peaks(*facts, card, seen.machine.peaks[owner->second]);
    }
    seen.machine.processes[owner->second].push_back(std::move(one));
  }
}

// A job that uses some of its cards is known to use nothing on the others, where the driver lists
// every process with its figure.
void add_unused(const MachineInputs& inputs, const node::Attribution& attribution,
                serve::MachineReading& machine) {
  for (const node::JobHold& job : inputs.jobs) {
    const auto used = machine.used.find(job.id);
    if (used == machine.used.end()) continue;
    for (const node::CardUse& use : attribution.cards)
      if (use.processes_known && !use.silent.contains(job.id) &&
          std::find(job.cards.begin(), job.cards.end(), use.uuid) != job.cards.end())
        used->second.try_emplace(use.uuid);
  }
}

// No process of any job is hidden on this card: the driver lists them all, none is behind an MPS
// server, and what is listed explains what is in use.
bool lists_all(const seam::CardReading& card, const node::CardUse& use) {
  return card.state == seam::CardState::kOk && use.processes_known && use.unlisted.is_zero() &&
         std::none_of(card.processes->begin(), card.processes->end(),
                      [](const seam::ProcessReading& process) { return process.mps; });
}

// A job that certainly has no process on any of its cards has an empty list of loads.
void add_absent(const MachineInputs& inputs, const node::Attribution& attribution,
                MachineSeen& seen) {
  const std::vector<seam::CardReading>& cards = inputs.snapshot->cards;
  for (const node::JobHold& job : inputs.jobs) {
    if (job.cards.empty() || seen.loads.contains(job.id)) continue;
    const bool absent =
        std::all_of(job.cards.begin(), job.cards.end(), [&](const std::string& uuid) {
          for (std::size_t i = 0; i < cards.size(); ++i)
            if (cards[i].uuid == uuid) return lists_all(cards[i], attribution.cards[i]);
          return false;
        });
    if (absent) seen.loads[job.id];
  }
}

}  // namespace

MachineSeen look_at(const MachineInputs& inputs,
                    const std::map<pid_t, core::JobId>& owners_before) {
  MachineSeen seen;
  seen.machine.trouble = inputs.trouble;
  seen.machine.unread = inputs.unread;
  seen.capacities = inputs.capacities;
  if (inputs.snapshot == nullptr) return seen;
  std::vector<node::OtherHold> others;
  for (const node::OtherClaim& other : inputs.claims)
    others.push_back(
        {other.user + "'s mete", other.claim.runner, other.claim.uuid, other.claim.bytes});
  node::Attribution attribution =
      node::attribute(without_movers(inputs), inputs.jobs, others, owners_before);
  seen.owners = std::move(attribution.owners);
  seen.machine.read_at = inputs.snapshot->at;
  seen.machine.driver = inputs.snapshot->driver.version;
  for (std::size_t i = 0; i < inputs.snapshot->cards.size(); ++i) {
    const seam::CardReading& card = inputs.snapshot->cards[i];
    const node::CardUse& use = attribution.cards[i];
    if (card.uuid.empty()) continue;  // lost before it was ever read: it has no name
    if (card.capacity()) seen.capacities[card.uuid] = *card.capacity();
    seen.machine.pool.cards.push_back(pool_card(card, use, inputs));
    seen.machine.cards.emplace(card.uuid, figures_of(card, use, inputs));
    for (const auto& [job, bytes] : use.jobs)
      if (!use.silent.contains(job)) seen.machine.used[job][card.uuid] = bytes;
    add_processes(card, *inputs.snapshot, seen);
    if (!card.processes)
      for (const auto& [job, bytes] : use.jobs) seen.loads[job].push_back(std::nullopt);
  }
  add_unused(inputs, attribution, seen.machine);
  add_absent(inputs, attribution, seen);
  for (auto& [job, processes] : seen.machine.processes)
    std::stable_sort(processes.begin(), processes.end(),
                     [](const auto& a, const auto& b) { return a.pid < b.pid; });
  return seen;
}

}  // namespace mete::daemon
