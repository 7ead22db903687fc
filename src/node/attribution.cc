// SPDX-License-Identifier: Apache-2.0
// See attribution.h. For each process on a card: a job of ours, by descent from its runner or, if
// the runner is gone, by the variables in its environment; else a claim of another daemon, by
// descent from the runner in the claim; else foreign. What the card has in use beyond all listed
// processes is "unlisted".
#include "node/attribution.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace mete::node {

namespace {

using core::JobId;
using core::ProcessRef;

// The processes of one snapshot, by pid.
class Family {
 public:
  explicit Family(const std::vector<ProcessFacts>& processes) {
    for (const ProcessFacts& process : processes) by_pid_[process.pid] = &process;
  }
  const ProcessFacts* find(pid_t pid) const {
    const auto found = by_pid_.find(pid);
    return found == by_pid_.end() ? nullptr : found->second;
  }
  // Whether the process is `ancestor` or descends from it.
  bool reaches(pid_t pid, const ProcessRef& ancestor) const {
    std::set<pid_t> passed;  // a list that was read while it changed may contain a cycle
    for (const ProcessFacts* at = find(pid); at != nullptr && at->visible; at = find(at->parent)) {
      if (at->pid == ancestor.pid) return at->start_ticks == ancestor.start_ticks;
      if (!passed.insert(at->pid).second) return false;
    }
    return false;
  }
  // Also by the first process of its pid namespace: a process that enters a job's container belongs
  // to the job.
  bool belongs_to(const ProcessFacts& process, const ProcessRef& runner) const {
    return reaches(process.pid, runner) ||
           (process.namespace_init > 0 && reaches(process.namespace_init, runner));
  }

 private:
  std::map<pid_t, const ProcessFacts*> by_pid_;
};

struct World {
  const Family& family;
  const std::vector<JobHold>& jobs;
  const std::vector<OtherHold>& others;
  const std::map<pid_t, JobId>& owners_before;
};

std::optional<JobId> job_of(const World& world, pid_t pid) {
  const ProcessFacts* process = world.family.find(pid);
  if (process == nullptr) {
    // The process is gone: it still counts for its former job, for as long as that job exists.
    const auto before = world.owners_before.find(pid);
    if (before == world.owners_before.end()) return std::nullopt;
    const bool lives = std::any_of(world.jobs.begin(), world.jobs.end(),
                                   [&](const JobHold& job) { return job.id == before->second; });
    return lives ? std::optional(before->second) : std::nullopt;
  }
  if (!process->visible) return std::nullopt;
  // For runs inside runs, the innermost.
  const JobHold* nearest = nullptr;
  for (const JobHold& job : world.jobs)
    if (job.runner && world.family.belongs_to(*process, *job.runner) &&
        (nearest == nullptr || world.family.reaches(job.runner->pid, *nearest->runner)))
      nearest = &job;
  if (nearest != nullptr) return nearest->id;
  // Its runner is gone: another process has adopted it, and its environment names the job. This is
  // trusted only for processes of the job's own user.
  for (const JobHold& job : world.jobs)
    if (job.runner && process->uid == job.uid && process->job == core::to_string(job.id) &&
        process->token == core::to_string(*job.runner))
      return job.id;
  return std::nullopt;
}

// The claim on this card that the process belongs to; nullptr: none.
const OtherHold* claim_of(const World& world, const std::string& uuid, pid_t pid) {
  const ProcessFacts* process = world.family.find(pid);
  if (process == nullptr || !process->visible) return nullptr;
  const auto found =
      std::find_if(world.others.begin(), world.others.end(), [&](const OtherHold& other) {
        return other.uuid == uuid && other.runner &&
               world.family.belongs_to(*process, *other.runner);
      });
  return found == world.others.end() ? nullptr : &*found;
}

// What the processes of claims hold, divided into the claimed part and the part beyond the claim: a
// job of another daemon may have escaped as one of ours may.
void divide_claimed(const std::map<const OtherHold*, Bytes>& held, CardUse& use) {
  for (const auto& [claim, bytes] : held) {
    const bool within = !claim->bytes || bytes <= claim->bytes->plus(kClaimNoise);
    use.claimed = use.claimed.plus(within ? bytes : *claim->bytes);
    if (!within)
      use.over_claim.push_back({claim->who + " beyond its claim", bytes - *claim->bytes});
  }
  std::sort(use.over_claim.begin(), use.over_claim.end(), [](const HeldBy& a, const HeldBy& b) {
    return std::tie(a.who, a.bytes) < std::tie(b.who, b.bytes);
  });
}

Bytes charged_to(const JobHold& job, const std::string& uuid) {
  const auto found = job.charged.find(uuid);
  return found == job.charged.end() ? Bytes{} : found->second;
}

// Attributes the processes of one card; returns how much of `used` they explain.
Bytes sort_out(const seam::CardReading& card, const World& world, CardUse& use,
               std::map<pid_t, JobId>& owners) {
  Bytes explained;
  std::map<const OtherHold*, Bytes> claims;
  for (const seam::ProcessReading& process : *card.processes) {
    const Bytes used = process.used.value_or(Bytes{});
    explained = explained.plus(used);
    if (const std::optional<JobId> job = job_of(world, process.pid)) {
      use.jobs[*job] = use.jobs[*job].plus(used);
      owners[process.pid] = *job;
      if (!process.used) use.silent.insert(*job);
    } else if (const OtherHold* claim = claim_of(world, card.uuid, process.pid)) {
      claims[claim] = claims[claim].plus(used);
    } else if (const ProcessFacts* facts = world.family.find(process.pid)) {
      use.foreign.push_back({process.pid, facts->user, facts->comm, process.used});
    } else {
      use.ending = use.ending.plus(used);
    }
  }
  divide_claimed(claims, use);
  for (const JobHold& job : world.jobs)
    if (use.silent.contains(job.id)) explained = explained.plus(charged_to(job, card.uuid));
  return explained;
}

std::vector<HeldBy> in_words(const CardUse& use) {
  std::map<std::string, std::vector<const ForeignProcess*>> by_user;
  for (const ForeignProcess& process : use.foreign) by_user[process.user].push_back(&process);
  std::vector<HeldBy> words;
  for (const auto& [user, processes] : by_user) {
    const std::string whose = user.empty() ? "of another user" : "of " + user;
    Bytes sum;
    for (const ForeignProcess* process : processes) sum = sum.plus(process->used.value_or(Bytes{}));
    std::string who;
    if (processes.size() > 1) {
      who = std::to_string(processes.size()) + " processes " + whose;
    } else {
      who = "process " + std::to_string(processes.front()->pid) + " " + whose;
      if (!processes.front()->comm.empty()) who += " (" + processes.front()->comm + ")";
    }
    words.push_back({std::move(who), sum, user,
                     processes.size() == 1 ? std::optional(processes.front()->pid) : std::nullopt});
  }
  words.insert(words.end(), use.over_claim.begin(), use.over_claim.end());
  if (!use.unlisted.is_zero())
    words.push_back(
        {use.processes_known ? "processes that the driver does not list" : "others", use.unlisted});
  if (!use.ending.is_zero()) words.push_back({"processes that have just ended", use.ending});
  std::stable_sort(words.begin(), words.end(),
                   [](const HeldBy& a, const HeldBy& b) { return a.bytes > b.bytes; });
  return words;
}

}  // namespace

Bytes CardUse::outside_bytes() const {
  Bytes sum;
  for (const HeldBy& held : outside) sum = sum.plus(held.bytes);
  return sum;
}

Attribution attribute(const CardSnapshot& snapshot, const std::vector<JobHold>& jobs,
                      const std::vector<OtherHold>& others,
                      const std::map<pid_t, JobId>& owners_before) {
  const Family family(snapshot.processes);
  const World world{family, jobs, others, owners_before};
  Attribution result;
  for (const seam::CardReading& card : snapshot.cards) {
    CardUse& use = result.cards.emplace_back();
    use.uuid = card.uuid;
    if (card.state == seam::CardState::kLost) continue;
    use.processes_known = card.processes.has_value();
    Bytes explained;
    if (card.processes) {
      explained = sort_out(card, world, use, result.owners);
    } else {
      for (const JobHold& job : jobs) explained = explained.plus(charged_to(job, card.uuid));
    }
    const Bytes rest = card.used ? card.used->minus(explained) : Bytes{};
    if (!card.processes || rest > kUnlistedNoise) use.unlisted = rest;
    use.outside = in_words(use);
  }
  return result;
}

}  // namespace mete::node
