// SPDX-License-Identifier: Apache-2.0
// When a job that waits will start. The line is walked forward by the same walk that starts jobs
// (order/pass.h), once for each of a few futures: in each of them every job runs for as long as
// some earlier job of its user and name did. Half of the futures start the job by `at`; `by` is
// the 80 % mark, stretched by what earlier forecasts were worth (ForecastScore), as far as it is
// uncertain: what is before --begin or in others' reservations is not. No randomness: the same
// state and moment give the same answer.
//
// How long a job runs is drawn from the durations of its kind; the fewer of those are known, the
// more often from those of all jobs. --time cuts both; where nothing is known, it is taken to be
// used up. A job that runs longer than everything known is believed to run as long again, half of
// the time. A job without limit on a machine that has no history runs forever, and then there is no
// forecast for those who wait for it: it is absent, not invented.
//
// Jobs that are yet to come are taken to come as they did lately (arrivals.h). Not foreseen: that
// somebody is cancelled, held or released, and that cards are lost.
#pragma once

#include <cstddef>
#include <optional>

#include "core/job/state.h"

namespace mete::core {

// Further back in line there is no forecast, and jobs further back are not looked at.
inline constexpr std::size_t kForecastJobs = 200;

// nullopt: nobody can tell, it is too far back, or it does not stand in line (held, --after).
// `sight` is of this state and moment: state.look(moment), or engine.sight().
std::optional<Forecast> forecast(const State& state, const Moment& moment, const Sight& sight,
                                 JobId id);

}  // namespace mete::core
