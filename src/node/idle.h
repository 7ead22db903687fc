// SPDX-License-Identifier: Apache-2.0
// Since when jobs have been idle on their cards, from one reading to the next. Pure.
//
// A job is idle if each of its processes on a card was seen to do nothing in all readings of at
// least kIdleAfter. Unknown never means idle: a driver that does not report, a process for which a
// reading had no answer, a job that has no process on a card (yet, or any more; the list of its
// loads is empty or missing). One or two
// readings without an answer (a process has just ended, sensors were read at different moments) do
// not make a job busy that does nothing before and after; kForgetAfter of them do.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "base/time.h"
#include "seam/clock.h"
#include "seam/launcher.h"

namespace mete::node {

// What each process of a job did on each of its cards, as in seam::ProcessReading.
using JobLoads = std::map<core::JobId, std::vector<std::optional<unsigned>>>;

class Idle {
 public:
  // NVML samples processes about once a second, readings are up to four times as frequent.
  static constexpr seam::Nanoseconds kIdleAfter = std::chrono::seconds(3);
  static constexpr seam::Nanoseconds kForgetAfter = std::chrono::seconds(5);

  // `at` is when the reading began, `wall` is that moment as wall time. A repeated reading changes
  // nothing. A job without processes is not in `loads`.
  void see(seam::Nanoseconds at, WallTime wall, const JobLoads& loads);

  // For the jobs that are idle by the last reading.
  std::map<core::JobId, WallTime> since() const;

 private:
  struct Quiet {
    seam::Nanoseconds first{};
    seam::Nanoseconds last{};
    WallTime since;
  };
  std::map<core::JobId, Quiet> quiet_;
  seam::Nanoseconds at_{-1};
};

}  // namespace mete::node
