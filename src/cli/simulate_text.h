// SPDX-License-Identifier: Apache-2.0
// What `mete simulate` prints: values in, text for people or the document mete.simulate/1 out.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulate/replay.h"
#include "simulate/timed.h"

namespace mete::cli {

// Of jobs with times.
struct TimedReport {
  std::string place;  // "2xH200+1xT4"; "": of a file
  simulate::Waits waits;
  simulate::OverTime mean;
  std::size_t left_waiting = 0;                  // to the end
  std::string refused_why = {};                  // of the first that can never run
  std::optional<simulate::Waits> recorded = {};  // of a history: as it was
  std::optional<simulate::Waits> today = {};     // of the daemon's history: simulated on its cards
  std::size_t left_out = 0;                      // of a history: jobs that say too little
};

struct SimulateReport {
  std::string policy;
  std::string mix;
  std::uint64_t seed = 0;
  std::size_t nodes = 0;
  std::size_t arrivals = 0;
  double cpu_s = 0;  // of all decisions
  std::vector<std::uint32_t> times_ns;
  simulate::Score score;
  std::optional<TimedReport> timed = {};
};

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
