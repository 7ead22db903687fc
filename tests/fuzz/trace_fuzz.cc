// SPDX-License-Identifier: Apache-2.0
// Traces from anybody: whatever the files say, parsing ends with values that a cluster accepts, or
// with an error that names the file; what was parsed can be replayed.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/cluster/policy.h"
#include "simulate/replay.h"

using namespace mete;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Nodes, jobs and arrivals, each ended by a NUL.
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const auto next = [&] {
    const std::size_t end = rest.find('\0');
    const std::string_view part = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    return part;
  };
  simulate::Trace trace;
  auto nodes = simulate::parse_nodes(next(), "nodes.csv");
  if (!nodes) {
    if (!nodes.error().message.starts_with("nodes.csv:")) std::abort();
    return 0;
  }
  trace.nodes = std::move(*nodes);
  const std::string_view list = next();
  auto jobs = simulate::parse_jobs(list, "jobs.csv", trace.nodes);
  if (!jobs) {
    if (!jobs.error().message.starts_with("jobs.csv:")) std::abort();
    return 0;
  }
  trace.jobs = std::move(*jobs);
  const auto timed = simulate::parse_jobs(list, "jobs.csv", trace.nodes, simulate::Times::kNeeded);
  if (timed)
    for (const simulate::TraceJob& job : *timed)
      if (job.times->run_ms < 0 || job.times->submit_ms < 0) std::abort();
  auto arrivals = simulate::parse_arrivals(next(), "arrivals.txt", trace.jobs.size());
  if (!arrivals) return 0;
  trace.arrivals = std::move(*arrivals);
  const auto policy = core::cluster::make_mete();
  const auto decided = simulate::replay(trace, *policy, simulate::MixFrom::kJobs, {}, {2, 1000});
  if (!decided || !simulate::score(trace, *decided)) std::abort();
  return 0;
}
