// SPDX-License-Identifier: Apache-2.0
// See judge.h.
#include "daemon/judge.h"

#include <algorithm>
#include <utility>

namespace mete::daemon {

Judge::Verdicts Judge::see(const node::CardSnapshot& snapshot, WallTime wall,
                           const std::map<pid_t, core::JobId>& owners, node::JobLoads loads,
                           const std::vector<Subject>& jobs, bool stale) {
  // A job that is parked, or on its way there or back, does nothing because it cannot. While it is
  // being started, parked or ended its grant file does not say all.
  std::vector<node::EscapeJob> running;
  for (const Subject& job : jobs)
    if (job.running) running.push_back({job.id, job.grant});
  std::erase_if(loads, [&](const auto& each) {
    return std::none_of(running.begin(), running.end(),
                        [&](const node::EscapeJob& job) { return job.id == each.first; });
  });
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
