// SPDX-License-Identifier: Apache-2.0
// See judge.h.
#include "daemon/judge.h"

#include <algorithm>
#include <utility>

namespace mete::daemon {

Judge::Verdicts Judge::see(const node::CardSnapshot& snapshot, WallTime wall,
                           const std::map<pid_t, core::JobId>& owners, node::JobLoads loads,
                           const std::vector<Subject>& jobs, bool stale) {
  // A parked job, or one on its way there or back, is not idle by choice. The grant file of a job
  // that is being started, parked or ended is incomplete.
  std::vector<node::EscapeJob> running;
  for (const Subject& job : jobs)
    if (job.running) running.push_back({job.id, job.grant});
  std::erase_if(loads, [&](const auto& each) {
    return std::none_of(running.begin(), running.end(),
                        [&](const node::EscapeJob& job) { return job.id == each.first; });
  });
  for (const Subject& job : jobs)
    if (const auto load = loads.find(job.id);
        job.unused_is_idle && load != loads.end() && load->second.empty())
      load->second.emplace_back(0);
  idle_.see(snapshot.at, wall, loads);
  Verdicts verdicts;
  if (stale) return verdicts;
  verdicts.idle_since = idle_.since();
  for (const auto& [id, since] : verdicts.idle_since)
    verdicts.inputs.emplace_back(core::Idle{id, since});
  for (const Subject& job : jobs)
    if (job.idle && !verdicts.idle_since.contains(job.id))
      verdicts.inputs.emplace_back(core::Active{job.id});
  for (node::EscapeWatch::Seen& seen : escapes_.see(snapshot, owners, running))
    verdicts.inputs.emplace_back(
        core::Escaped{seen.job, std::move(seen.escape), seen.certain && stop_});
  return verdicts;
}

}  // namespace mete::daemon
