// SPDX-License-Identifier: Apache-2.0
// Traces from anybody: whatever the files say, parsing ends with values that a cluster accepts, or
// with an error that names the file; what was parsed can be replayed. The same bytes are read as
// loads of services.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/cluster/policy.h"
#include "simulate/autoscale.h"
#include "simulate/replay.h"
#include "simulate/residency.h"

using namespace mete;

namespace {

// Loads of services, and requests for models.
void look_at_loads(std::string_view text) {
  if (const auto load = simulate::parse_in_flight(text, "load.csv"); load)
    (void)simulate::simulate_autoscaling({}, *load);
  else if (!load.error().message.starts_with("load.csv:"))
    std::abort();
  const std::vector<simulate::SimulatedModel> models = {
      {.name = "a", .bytes = Bytes::from_gib(2)},
      {.name = "b", .aliases = {"b", "c"}, .bytes = Bytes::from_gib(3), .concurrency = 1}};
  const auto requests = simulate::parse_model_requests(text, "requests.csv", models);
  if (!requests && !requests.error().message.starts_with("requests.csv:")) std::abort();
  if (!requests) return;
  const auto figures =
      simulate::simulate_residency(models, Bytes::from_gib(4), Bytes::from_gib(8), *requests);
  if (!figures || figures->requests != requests->size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  look_at_loads({reinterpret_cast<const char*>(data), size});
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
