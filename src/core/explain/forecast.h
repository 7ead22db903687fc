// SPDX-License-Identifier: Apache-2.0
// When waiting jobs will start. The queue is played forward with the passes that start real jobs
// (order/pass.h), once for each of a few futures: in each future every job runs as long as some
// earlier job like it did. `at` is when half of the futures have started the job; `by` is the 80 %
// mark, stretched by how well earlier forecasts did (ForecastScore). Only the uncertain part is
// stretched: not the time before --begin or in reservations of others. No randomness: equal states
// and moments give equal forecasts, and one run gives them for all jobs.
//
// The length of a job is drawn from the durations of jobs of its user, name and command that ran
// longer than it has run so far (lengths.h). --time cuts it; if nothing else is known, the whole
// --time is assumed. A job of which nothing is known runs forever, and a job that waits for it has
// no forecast: absent, not invented. No forecast is before the time at which it is made.
//
// Jobs that are yet to come are assumed to come as they did lately (arrivals.h). Jobs that are
// parked for others leave their cards after the time that moving their bytes takes, and do not
// return. Cancelled, held and released jobs and lost cards are not foreseen.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>

#include "core/job/state.h"

namespace mete::core {

// Jobs further back in the queue have no forecast, and are ignored.
inline constexpr std::size_t kForecastJobs = 1'000;

// A forecast for all jobs of the queue, in as many steps as the caller likes. What is known is
// copied at the beginning; the state must outlive the forecaster, and may change meanwhile.
class Forecaster {
 public:
  // `sight` must be of this state. With `only`, the run ends when it knows enough about that job.
  Forecaster(const State& state, const Sight& sight, std::optional<JobId> only = {});
  ~Forecaster();

  // How much work is left, at most and expected: 6,000 are a millisecond.
  std::size_t most_work() const;
  std::size_t expected_work() const;
  // Continues until all work, or `work` of it, is done. False: some is left.
  bool go_on(std::size_t work);
  // When all work is done. A job is absent if nothing is known, it is too far back, or it is not in
  // the queue (held, --after).
  const std::map<JobId, Forecast>& told() const;

 private:
  class Pass;
  std::unique_ptr<Pass> pass_;
};

// For one job. `sight` must be of this state and moment: state.look(moment), or engine.sight().
std::optional<Forecast> forecast(const State& state, const Sight& sight, JobId id);

}  // namespace mete::core
