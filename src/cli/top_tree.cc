// SPDX-License-Identifier: Apache-2.0
// See top_tree.h.
#include "cli/top_tree.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "node/proc.h"
#include "runner/cap_sampler.h"

namespace mete::cli {

namespace {

using wire::Snapshot;

constexpr std::size_t kMostKin = 500;  // of one job: no user reads more

struct Population {
  std::map<pid_t, node::ProcessStat> all;
  std::map<pid_t, std::vector<pid_t>> children;
};

Population look_around() {
  Population people;
  const Result<std::vector<pid_t>> pids = node::read_all_pids();
  if (!pids) return people;
  for (const pid_t pid : *pids) {
    Result<node::ProcessStat> stat = node::read_stat(pid);
    if (!stat || stat->is_dead()) continue;  // it has ended since
    people.children[stat->parent].push_back(pid);
    people.all.emplace(pid, *std::move(stat));
  }
  return people;
}

void add_family(Snapshot::Job& job, const Population& people, const std::set<pid_t>& runners) {
  const auto runner = people.all.find(job.runner->pid);
  if (runner == people.all.end() || runner->second.start_ticks != job.runner->start_ticks) return;
  std::set<pid_t> known;
  for (const Snapshot::Process& process : job.processes) known.insert(process.pid);
  std::vector<pid_t> waiting{job.runner->pid};
  while (!waiting.empty() && job.processes.size() < kMostKin) {
    const auto children = people.children.find(waiting.back());
    waiting.pop_back();
    if (children == people.children.end()) continue;
    for (const pid_t pid : children->second) {
      const node::ProcessStat& stat = people.all.at(pid);
      const bool ours = stat.parent == job.runner->pid && stat.comm == runner::kSamplerName;
      if (runners.contains(pid) || ours) continue;
      waiting.push_back(pid);
      if (known.contains(pid)) continue;
      Snapshot::Process process;
      process.pid = pid;
      process.start_ticks = stat.start_ticks;
      process.parent = stat.parent;
      process.name = stat.comm;
      job.processes.push_back(std::move(process));
    }
  }
  std::stable_sort(
      job.processes.begin(), job.processes.end(),
      [](const Snapshot::Process& a, const Snapshot::Process& b) { return a.pid < b.pid; });
}

}  // namespace

void add_families(Snapshot& snapshot) {
  std::set<pid_t> runners;
  for (Snapshot::Job& job : snapshot.jobs) {
    if (job.runner) runners.insert(job.runner->pid);
    std::erase_if(job.processes, [](const auto& process) { return !process.card; });
  }
  if (runners.empty()) return;
  const Population people = look_around();
  for (Snapshot::Job& job : snapshot.jobs)
    if (job.runner) add_family(job, people, runners);
}

}  // namespace mete::cli
