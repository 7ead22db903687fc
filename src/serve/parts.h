// SPDX-License-Identifier: Apache-2.0
// The parts of the service, each with the parts that it uses: a part uses only parts above it.
#pragma once

#include "serve/cards.h"
#include "serve/daemon_status.h"
#include "serve/dispatcher.h"
#include "serve/events.h"
#include "serve/forecasts.h"
#include "serve/host.h"
#include "serve/job_views.h"
#include "serve/jobs.h"
#include "serve/queue_rules.h"
#include "serve/runners.h"
#include "serve/sight.h"
#include "serve/sweeps.h"
#include "serve/waiters.h"

namespace mete::serve {

struct Parts {
  Host host;
  Dispatcher dispatcher{host.loop, host.clock, host.engine};
  Forecasts forecasts{host.loop, host.clock, host.engine};
  Cards cards{host, dispatcher};
  DaemonStatus status{host, cards.machine()};
  JobViews views{host, cards.machine(), forecasts};
  Waiters waiters{host, dispatcher, views};
  Jobs jobs{host, dispatcher, cards.machine(), forecasts, views, waiters};
  Runners runners{host, dispatcher, cards, views, waiters};
  Events events{host, dispatcher};
  QueueRules rules{host, dispatcher, cards.machine()};
  Sweeps sweeps{host, dispatcher, cards.machine()};
  Sight sight{host, dispatcher, cards, status, forecasts, views};
};

}  // namespace mete::serve
