// SPDX-License-Identifier: Apache-2.0
// When the jobs that wait will start. The queue is walked forward by the same walk that starts jobs
// (order/pass.h), once for each of a few futures: in each of them every job runs for as long as
// some earlier job like it did. Half of the futures start a job by `at`; `by` is the 80 % mark,
// stretched by what earlier forecasts were worth (ForecastScore), as far as it is uncertain: what
// is before --begin or in others' reservations is not. No randomness: the same state and moment
// give the same answer, and one pass gives it for all jobs.
//
// How long a job runs is drawn from the durations of jobs of its user, name and program that ran
// longer than it has run so far (lengths.h). --time cuts it; where nothing else is known, it is
// taken to be used up. Other jobs say nothing about it. A job of which nothing is known runs
// forever, and a job that waits for it has no forecast: it is absent, not invented. No forecast is
// before the moment at which it is made.
//
// Jobs that are yet to come are taken to come as they did lately (arrivals.h). Jobs that are parked
// for others leave their cards after the time that their bytes take, and do not return. Not
// foreseen: that a job is cancelled, held or released, and that cards are lost.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>

#include "core/job/state.h"

namespace mete::core {

// Further back in the queue there is no forecast, and jobs further back are not looked at.
inline constexpr std::size_t kForecastJobs = 1'000;

// One pass for all jobs of the queue, in as many steps as its caller likes. What is known is copied
// when it begins; the state must outlive it, and may change meanwhile.
class Forecaster {
 public:
  // `sight` is of this state. With `only`, the pass ends when it knows enough of that job.
  Forecaster(const State& state, const Sight& sight, std::optional<JobId> only = {});
  ~Forecaster();

  // How much is left to be done, at most, and about: 6,000 are a millisecond.
  std::size_t most_work() const;
  std::size_t expected_work() const;
  // Goes on until it is done, or that much is done. False: it is not done.
  bool go_on(std::size_t work);
  // Once it is done. A job is absent if nothing can be said of it, it is too far back, or it does
  // not stand in the queue (held, --after).
  const std::map<JobId, Forecast>& told() const;

 private:
  class Pass;
  std::unique_ptr<Pass> pass_;
};

// Of one job. `sight` is of this state and moment: state.look(moment), or engine.sight().
std::optional<Forecast> forecast(const State& state, const Sight& sight, JobId id);

}  // namespace mete::core
