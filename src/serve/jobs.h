// SPDX-License-Identifier: Apache-2.0
// What users do with jobs. Routes: /v1/jobs, /v1/try, and below /v1/jobs/{id} all that is not for
// the runner of the job (runners.h).
#pragma once

#include <optional>
#include <vector>

#include "serve/call.h"
#include "serve/dispatcher.h"
#include "serve/forecasts.h"
#include "serve/host.h"
#include "serve/job_views.h"
#include "serve/machine_reading.h"
#include "serve/waiters.h"
#include "wire/explain.h"
#include "wire/queue.h"
#include "wire/show.h"
#include "wire/submit.h"

namespace mete::serve {

class Jobs {
 public:
  Jobs(const Host& host, Dispatcher& dispatcher, const MachineReading& machine,
       Forecasts& forecasts, JobViews& views, Waiters& waiters)
      : clock_(host.clock),
        engine_(host.engine),
        identity_(host.identity),
        dispatcher_(dispatcher),
        machine_(machine),
        forecasts_(forecasts),
        views_(views),
        waiters_(waiters) {}

  void post(Call& call);
  // What would happen to such a job: nothing is recorded.
  void try_out(Call& call);
  void list(Call& call);
  void show(Call& call);
  void explain(Call& call);
  void wait(Call& call);
  // Cancel, Hold, Release, Requeue, UnparkJob: inputs of a job and a caller.
  template <class Input>
  void change(Call& call) {
    ask_to_change(call, Input{call.job, caller_of(identity_, call.peer())});
  }
  void park(Call& call);
  void set_priority(Call& call);

 private:
  void post_run(wire::RunRequest wanted, Call& call);
  void post_submit(wire::SubmitRequest wanted, Call& call);
  // What a job that asks to be parkable should know.
  std::string park_note_of(const core::JobSpec& spec) const;
  core::Submit submit_of(core::JobSpec spec, bool wait, const net::Peer& peer) const;
  wire::ShowDocument show_of(const core::Job& job);
  void ask_to_change(Call& call, core::Input input);
  // What is told to other users.
  wire::ExplainDocument explain_row(const core::Job& job);
  // Why the caller may not name these jobs by --after.
  std::optional<Error> refusal(const std::vector<core::After>& after, const net::Peer& peer) const;

  seam::Clock& clock_;
  engine::Engine& engine_;
  const Identity& identity_;
  Dispatcher& dispatcher_;
  const MachineReading& machine_;
  Forecasts& forecasts_;
  JobViews& views_;
  Waiters& waiters_;
};

}  // namespace mete::serve
