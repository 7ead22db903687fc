// SPDX-License-Identifier: Apache-2.0
#include "node/probe.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/text.h"
#include "node/child.h"
#include "node/probe_cache.h"

namespace mete::node {
namespace {

// The meter must not be in the probe: it would need the figure that is about to be measured. The
// probe sees one card, by UUID, and a user's settings for own programs do not go into a figure for
// all users.
std::vector<std::string> probe_environment(const ProbeRequest& request) {
  constexpr std::array<std::string_view, 6> kReplaced = {
      "LD_PRELOAD=",        "METE_GRANT=",          "CUDA_VISIBLE_DEVICES=",
      "CUDA_DEVICE_ORDER=", "CUDA_MODULE_LOADING=", "CUDA_INJECTION64_PATH="};
  std::vector<std::string> environment = request.environment;
  std::erase_if(environment, [&](const std::string& variable) {
    return std::any_of(kReplaced.begin(), kReplaced.end(),
                       [&](std::string_view name) { return variable.starts_with(name); });
  });
  environment.push_back("CUDA_VISIBLE_DEVICES=" + request.key.uuid);
  environment.push_back("CUDA_DEVICE_ORDER=PCI_BUS_ID");
  return environment;
}

bool is_one_word(std::string_view text) {
  return !text.empty() && text.find_first_of(" \n\t") == std::string_view::npos;
}

}  // namespace

std::string format_probe_line(const ContextCost& cost, std::string_view driver) {
  return "mete-probe 1 " + std::to_string(cost.first.count()) + " " +
         std::to_string(cost.more.count()) + " " + std::string(driver) + "\n";
}

Result<ProbeLine> parse_probe_line(std::string_view text) {
  const std::vector<std::string_view> words = base::split(base::trim(text), ' ');
  if (words.size() != 5 || words[0] != "mete-probe" || words[1] != "1")
    return Error::corrupt("mete-probe answered " + base::quote(text));
  const Result<std::uint64_t> first = base::parse_uint(words[2]), more = base::parse_uint(words[3]);
  if (!first || !more || *first == 0)
    return Error::corrupt("mete-probe answered " + base::quote(text));
  return ProbeLine{{Bytes::from_bytes(*first), Bytes::from_bytes(*more)}, std::string(words[4])};
}

bool mps_is_active(const std::string& pipe_directory) {
  const std::string folder = pipe_directory.empty() ? "/tmp/nvidia-mps" : pipe_directory;
  return access(base::join_path(folder, "control").c_str(), F_OK) == 0;
}

Result<ContextCost> measure_context_cost(const ProbeRequest& request, seam::Clock& clock) {
  if (!is_one_word(request.key.uuid) || !is_one_word(request.key.type) ||
      !is_one_word(request.key.driver))
    return Error::invalid("a probe needs a card, its type and a driver version");
  Result<ChildAnswer> answer =
      run_child({request.program,
                 {"--card", request.key.uuid, "--cuda", request.cuda, "--nvml", request.nvml},
                 probe_environment(request),
                 request.timeout},
                clock);
  if (!answer) return std::move(answer).error();
  if (answer->exit_code != 0)
    return Error::io("cannot measure what a context costs on " + request.key.uuid)
        .with_evidence(std::string(base::trim(answer->errors)) + " (exit " +
                       std::to_string(answer->exit_code) + ")");
  Result<ProbeLine> line = parse_probe_line(answer->output);
  if (!line) return std::move(line).error();
  if (line->driver != request.key.driver)
    return Error::busy("the driver changed from " + request.key.driver + " to " + line->driver +
                       " meanwhile");
  return line->cost;
}

Result<ContextCost> context_cost(const ProbeRequest& request, seam::Clock& clock) {
  if (!request.cache.empty())
    if (const std::optional<ContextCost> cached = find_cached(request.cache, request.key))
      return *cached;
  Result<ContextCost> cost = measure_context_cost(request, clock);
  if (!cost) return cost;
  if (!request.cache.empty()) (void)store_cached(request.cache, request.key, *cost);
  return cost;
}

}  // namespace mete::node
