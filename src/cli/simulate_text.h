// SPDX-License-Identifier: Apache-2.0
// The output of `mete simulate`: values in, text or the document mete.simulate/1 out. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulate/replay.h"
#include "simulate/timed.h"

namespace mete::cli {

// For jobs with times.
struct TimedReport {
  std::string place;  // "2xH200+1xT4"; "": from a file
  simulate::Waits waits;
  simulate::OverTime mean;
  std::size_t left_waiting = 0;                  // jobs that never started
  std::string refused_why = {};                  // why the first refused job can never run
  std::optional<simulate::Waits> recorded = {};  // history: as it was
  std::optional<simulate::Waits> today = {};     // the daemon's history: simulated on its cards
  std::size_t left_out = 0;                      // history: jobs with too little data
};

struct SimulateReport {
  std::string policy;
  std::string mix;
  std::uint64_t seed = 0;
  std::size_t nodes = 0;
  std::size_t arrivals = 0;
  double cpu_s = 0;  // for all decisions
  std::vector<std::uint32_t> times_ns;
  simulate::Score score;
  std::optional<TimedReport> timed = {};
};

// "0.30": with this number of digits after the point.
std::string decimal(double value, int digits);

std::string simulate_json(const SimulateReport& report, const std::string& at);
std::string simulate_text(const SimulateReport& report);

// The page of --report.
std::string simulate_page(const SimulateReport& report, const std::string& at);
std::string simulate_page(const SimulateReport& report, const std::string& at,
                          const std::vector<simulate::TimedJob>& jobs, const simulate::Timed& timed,
                          const std::vector<std::string>& classes);

// "simulating  50 % [######......] 5000 of 10000".
std::string progress_bar(std::size_t done, std::size_t all);

}  // namespace mete::cli
