// SPDX-License-Identifier: Apache-2.0
// What the runner of a job asks and reports: its own state again and again, and how the program
// stands. Routes: GET /v1/jobs/{id}, and started, ended, parked and grow below it.
#pragma once

#include <cstdint>
#include <map>

#include "serve/call.h"
#include "serve/cards.h"
#include "serve/dispatcher.h"
#include "serve/host.h"
#include "serve/job_views.h"
#include "serve/waiters.h"

namespace mete::serve {

class Runners {
 public:
  Runners(const Host& host, Dispatcher& dispatcher, Cards& cards, JobViews& views, Waiters& waiters)
      : engine_(host.engine),
        identity_(host.identity),
        dispatcher_(dispatcher),
        cards_(cards),
        views_(views),
        waiters_(waiters) {}

  // With ?tag=T (of a runner) or ?since=T (of all who may see it), when the job has changed.
  void get(Call& call);
  void started(Call& call);
  void ended(Call& call);
  void parked(Call& call);
  void grow(Call& call);

 private:
  enum class Report { kLife, kMemory };  // started and ended; parked and grow
  // False: the call is answered, and nothing is to be done.
  bool may_report(Call& call, Report report);
  bool is_overtaken(core::JobId id, const net::Request& request);
  void ask(Call& call, core::Input input);

  engine::Engine& engine_;
  const Identity& identity_;
  Dispatcher& dispatcher_;
  Cards& cards_;
  JobViews& views_;
  Waiters& waiters_;
  // The order of the last report of each runner: older reports come too late.
  std::map<core::JobId, std::uint64_t> last_order_;
};

}  // namespace mete::serve
