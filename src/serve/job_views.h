// SPDX-License-Identifier: Apache-2.0
// Jobs as answers show them. What is told of a job is the same in lists, snapshots and answers to
// runners, and is made here.
#pragma once

#include <string>

#include "net/http.h"
#include "serve/forecasts.h"
#include "serve/host.h"
#include "serve/machine_reading.h"
#include "wire/job.h"

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

  // The answer to a runner: the job with all that is needed to start it, or 404.
  net::Response runner_reply(core::JobId id, int status);
  // The answer to a wait: the jobs of this number; with `any`, only those that have ended.
  net::Response wait_reply(core::JobId id, bool any);

 private:
  wire::RunReply reply_for(const core::Job& job);

  seam::Clock& clock_;
  engine::Engine& engine_;
  const Identity& identity_;
  const MachineReading& machine_;
  const Forecasts& forecasts_;
};

}  // namespace mete::serve
