// SPDX-License-Identifier: Apache-2.0
// See facts.h.
#include "simulate/facts.h"

#include <algorithm>

namespace mete::simulate {

core::NodeFacts facts_of(const core::cluster::Node& node) {
  core::NodeFacts facts;
  facts.agent_connected = true;
  facts.running_tasks = node.grants;
  for (const auto& [name, value] : node.spec.attributes)
    facts.attributes[name] =
        value.empty() ? std::vector<std::string>{} : std::vector<std::string>{value};
  facts.attributes["gpu.count"] = {std::to_string(node.spec.cards)};
  if (node.spec.cards == 0) return facts;
  facts.attributes["gpu.type"] = {node.spec.card_type};
  if (node.spec.card_mib == 0) return facts;
  const auto bytes = [&](std::int64_t thousandths) {
    return std::to_string((node.spec.card_mib * thousandths / core::cluster::kWholeCard) << 20);
  };
  facts.attributes["gpu.memory"] = {bytes(core::cluster::kWholeCard)};
  facts.attributes["gpu.free"] = {
      bytes(*std::max_element(node.free.begin(), node.free.begin() + node.spec.cards))};
  return facts;
}

}  // namespace mete::simulate
