// SPDX-License-Identifier: Apache-2.0
// Requests of a job's runner: its own state, again and again, and reports on the program. Routes:
// GET /v1/jobs/{id}, and started, ended, parked and grow below it.
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
        dispatcher_(dispatcher),
        cards_(cards),
        views_(views),
        waiters_(waiters) {}

  // With ?tag=T (from a runner) or ?since=T (from users who may see it): answers when the job has
  // changed.
  void get(Call& call);
  void started(Call& call);
  void ended(Call& call);
  void parked(Call& call);
  void grow(Call& call);
  void metrics(Call& call);

 private:
  enum class Report { kLife, kMemory, kMetrics };  // started, ended; parked, grow; metrics
  // False: the call is answered, and there is nothing left to do.
  bool may_report(Call& call, Report report);
  bool is_overtaken(core::JobId id, const net::Request& request);
  void ask(Call& call, core::Input input);

  engine::Engine& engine_;
  Dispatcher& dispatcher_;
  Cards& cards_;
  JobViews& views_;
  Waiters& waiters_;
  // The order of the last report of each runner: older reports come too late.
  std::map<core::JobId, std::uint64_t> last_order_;
};

}  // namespace mete::serve
