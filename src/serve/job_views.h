// SPDX-License-Identifier: Apache-2.0
// Jobs as answers show them. What is told of a job is the same in lists, snapshots and answers to
// runners, and is made here.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "net/http.h"
#include "serve/forecasts.h"
#include "serve/host.h"
#include "serve/machine_reading.h"
#include "serve/wait_marks.h"
#include "wire/job.h"
#include "wire/snapshot.h"

namespace mete::serve {

class JobViews {
 public:
  JobViews(const Host& host, const MachineReading& machine, const Forecasts& forecasts)
      : clock_(host.clock),
        engine_(host.engine),
        identity_(host.identity),
        machine_(machine),
        forecasts_(forecasts) {}

  // Changes with everything that a runner's answer says. A thousand runners wait while the queue
  // moves: their answers are written only when this has changed.
  std::string tag_of(const core::Job& job);
  wire::JobView view_of(const core::Job& job, bool with_wait = true);
  // The job as other users see it. Of its wait only the reason is told: the rest would tell what
  // the job asks for, or why it could not be started.
  wire::JobView row_of(const core::Job& job);

  // The pending jobs of all users in their order, as of one version of the engine.
  struct QueueSummary {
    std::uint64_t version = 0;
    std::vector<wire::Snapshot::Queue::Entry> order;
    std::map<core::JobId, std::uint64_t> places;  // from 1
    std::map<std::string, std::uint64_t> depth;   // by reason
    std::optional<WallTime> oldest;               // submitted
  };
  // Costs as much as there are jobs: made on demand, once for each version of the engine.
  const QueueSummary& queue();
  // The place in the queue, from 1; nullopt: the job is not in it.
  std::optional<std::uint64_t> place_of(core::JobId id);

  // The answer to a runner: the job with all that is needed to start it, or 404.
  net::Response runner_reply(core::JobId id, int status, const std::string& note = "");
  // The answer to a wait: the jobs of this number; with `any`, only those that have ended.
  net::Response wait_reply(core::JobId id, bool any);

 private:
  wire::RunReply reply_for(const core::Job& job);
  // What is read of the machine: memory in use, idle time.
  void add_readings(const core::Job& job, wire::JobView& view) const;

  seam::Clock& clock_;
  engine::Engine& engine_;
  const Identity& identity_;
  const MachineReading& machine_;
  const Forecasts& forecasts_;
  QueueSummary queue_;
  WaitMarks marks_;
  core::SharedSpec last_row_;  // the spec of the last row
};

}  // namespace mete::serve
