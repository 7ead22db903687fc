// SPDX-License-Identifier: Apache-2.0
// See policy.h.
#include "core/cluster/policy.h"

#include "base/text.h"

namespace mete::core::cluster {

void NodePolicy::expect(const Cluster& /*cluster*/, const Mix& /*mix*/) {}

const std::vector<std::string_view>& policy_names() {
  static const std::vector<std::string_view> kNames{
      "mete",           "fgd",         "best-fit",          "first-fit",
      "spread",         "random",      "topology",          "binpack:cpu",
      "binpack:memory", "binpack:gpu", "binpack:gpuMemory", "spread:instanceId"};
  return kNames;
}

Result<std::unique_ptr<NodePolicy>> make_policy(std::string_view name, std::uint64_t seed) {
  if (name == "mete") return make_mete();
  if (name == "fgd") return make_fgd();
  if (name == "best-fit") return make_best_fit();
  if (name == "first-fit") return make_first_fit();
  if (name == "spread") return make_spread();
  if (name == "random") return make_random(seed);
  if (name == "topology") return make_topology();
  if (name.find(':') != std::string_view::npos) return make_ecs(name, seed);
  const std::string_view near = base::nearest(name, policy_names());
  std::string names;
  for (const std::string_view known : policy_names())
    names += (names.empty() ? "" : ", ") + std::string(known);
  return Error::invalid("there is no policy " + base::quote(name))
      .with_evidence("policies are " + names)
      .with_hint(near.empty() ? "leave --policy out to use mete"
                              : "did you mean " + std::string(near) + "?");
}

}  // namespace mete::core::cluster
