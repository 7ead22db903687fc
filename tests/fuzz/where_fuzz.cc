// SPDX-License-Identifier: Apache-2.0
// Any bytes as an expression of the query language: refused with a mark below a character of it, or
// understood, and then asked of some nodes, now and at any time.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "core/where/query.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mete;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<core::Query> query = core::Query::parse(text);
  if (!query) {
    METE_ASSERT(!query.error().evidence.empty());
    return 0;
  }
  core::NodeFacts node;
  (void)query->matches(node);
  node.ec2_instance_id = "i-0123456789abcdef0";
  node.agent_connected = false;
  node.agent_version = "1.14.5-rc1";
  node.registered_at = WallTime{1'518'479'999'000};
  node.running_tasks = 3;
  node.task_groups = {"web", "db", ""};
  node.attributes = {{"stack", {"prod"}}, {"ssd", {}}, {"gpu.memory", {"16G", "80G"}}};
  (void)query->matches(node);
  // What is true now could have been known to be possible.
  constexpr std::uint64_t kMost = std::uint64_t{80} << 30;
  const core::Varying free{"gpu.free", 0, kMost};
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{4096}, kMost / 3, kMost}) {
    node.attributes["gpu.free"] = {std::to_string(bytes)};
    METE_ASSERT(!query->matches(node) || query->may_match(node, std::span(&free, 1)));
  }
  return 0;
}
