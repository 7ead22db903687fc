// SPDX-License-Identifier: Apache-2.0
// See escape.h.
#include "node/escape.h"

#include <algorithm>

namespace mete::node {

namespace {

using core::JobId;

// A process of a job on one card.
struct Holder {
  const ProcessFacts* facts = nullptr;
  Bytes used;
  Bytes charged;  // as its meter says; zero without a meter
  bool mps = false;
  bool server = false;  // of MPS: holds the memory of its clients

  MeterFacts::State meter() const { return facts->meter.state; }
  // `over`: the job holds more than its grant.
  Bytes outside(bool over) const {
    if (server || meter() == MeterFacts::State::kUnknown) return {};
    if (meter() == MeterFacts::State::kNone) return used;
    const Bytes beyond = used.minus(charged);
    return over && beyond > EscapeWatch::kUnasked ? beyond : Bytes();
  }
};

struct OnCard {
  Bytes granted;
  std::uint32_t index = 0;
  std::string uuid;
  std::vector<Holder> holders;

  Bytes slack() const {
    return std::max(EscapeWatch::kLeast,
                    Bytes::from_bytes(granted.count() / 100 * EscapeWatch::kPercent));
  }
  // What all of them hold beyond the grant, and beyond what the driver may have taken unasked.
  Bytes beyond() const {
    Bytes sum, allowed = granted;
    for (const Holder& holder : holders) {
      sum = sum.plus(holder.used);
      if (holder.meter() != MeterFacts::State::kNone) allowed = allowed.plus(EscapeWatch::kUnasked);
    }
    return sum.minus(allowed);
  }
  bool under_mps() const {
    return std::any_of(holders.begin(), holders.end(),
                       [](const Holder& holder) { return holder.mps || holder.server; });
  }
};

struct Outside {
  const Holder* holder = nullptr;
  Bytes bytes;
};

std::vector<Outside> outside_of(const OnCard& card) {
  std::vector<Outside> found;
  const bool over = card.beyond() > card.slack();
  for (const Holder& holder : card.holders)
    if (const Bytes bytes = holder.outside(over); bytes > card.slack())
      found.push_back({&holder, bytes});
  if (!found.empty() || !over) return found;
  // All of them have charges that cover their memory, and together hold more than was ever granted.
  const auto largest =
      std::max_element(card.holders.begin(), card.holders.end(),
                       [](const Holder& a, const Holder& b) { return a.used < b.used; });
  found.push_back({&*largest, std::min(card.beyond(), largest->used)});
  return found;
}

const ProcessFacts* find(const CardSnapshot& snapshot, pid_t pid) {
  const auto found =
      std::lower_bound(snapshot.processes.begin(), snapshot.processes.end(), pid,
                       [](const ProcessFacts& facts, pid_t wanted) { return facts.pid < wanted; });
  return found != snapshot.processes.end() && found->pid == pid ? &*found : nullptr;
}

Holder holder_of(const seam::ProcessReading& process, const ProcessFacts& facts,
                 const std::string& uuid) {
  Holder holder{&facts, *process.used, {}, process.mps, facts.comm.starts_with("nvidia-cuda-mps")};
  for (const MeterFacts::Charge& charge : facts.meter.charges)
    if (charge.uuid == uuid) holder.charged = charge.bytes;
  return holder;
}

std::map<JobId, OnCard> sort_out(const seam::CardReading& card, const CardSnapshot& snapshot,
                                 const std::map<pid_t, JobId>& owners,
                                 const std::vector<EscapeJob>& jobs) {
  std::map<JobId, OnCard> by_job;
  if (card.state == seam::CardState::kLost || !card.processes) return by_job;
  for (const seam::ProcessReading& process : *card.processes) {
    const auto owner = owners.find(process.pid);
    const ProcessFacts* facts = find(snapshot, process.pid);
    if (owner == owners.end() || facts == nullptr || !facts->visible || facts->exiting ||
        !process.used)
      continue;
    const auto job = std::find_if(jobs.begin(), jobs.end(),
                                  [&](const EscapeJob& each) { return each.id == owner->second; });
    if (job == jobs.end()) continue;
    OnCard& on_card = by_job[job->id];
    on_card.index = card.index;
    on_card.uuid = card.uuid;
    on_card.granted = {};
    for (const core::GrantedCard& granted : job->grant)
      if (granted.uuid == card.uuid) on_card.granted = granted.bytes;
    on_card.holders.push_back(holder_of(process, *facts, card.uuid));
  }
  return by_job;
}

}  // namespace

std::vector<EscapeWatch::Seen> EscapeWatch::see(const CardSnapshot& snapshot,
                                                const std::map<pid_t, JobId>& owners,
                                                const std::vector<EscapeJob>& jobs) {
  if (snapshot.at == at_) return last_;
  at_ = snapshot.at;
  last_.clear();
  std::map<Key, unsigned> readings;
  for (const seam::CardReading& card : snapshot.cards)
    for (const auto& [job, on_card] : sort_out(card, snapshot, owners, jobs))
      for (const Outside& outside : outside_of(on_card)) {
        const ProcessFacts& facts = *outside.holder->facts;
        const Key key{job, facts.pid, facts.start_ticks, card.uuid};
        const auto before = readings_.find(key);
        const unsigned count =
            std::min(kCertain, before == readings_.end() ? 1 : before->second + 1);
        readings[key] = count;
        if (count < kTold) continue;
        // The charge in the file, bounded by what is possible.
        const Bytes charged = std::min(
            {outside.holder->charged, on_card.granted, outside.holder->used.minus(outside.bytes)});
        last_.push_back({job,
                         {facts.pid, facts.start_ticks, on_card.uuid, on_card.index, outside.bytes,
                          charged, facts.comm},
                         count >= kCertain && !on_card.under_mps()});
      }
  readings_ = std::move(readings);
  return last_;
}

}  // namespace mete::node
