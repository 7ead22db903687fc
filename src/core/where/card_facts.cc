// SPDX-License-Identifier: Apache-2.0
// See card_facts.h.
#include "core/where/card_facts.h"

namespace mete::core {

NodeFacts facts_of(const std::optional<CardFacts>& card, std::size_t cards, std::uint64_t jobs) {
  NodeFacts node;
  node.agent_connected = true;
  node.running_tasks = jobs;
  node.attributes["gpu.count"] = {std::to_string(cards)};
  if (!card) return node;
  node.attributes["gpu.type"] = {card->type};
  node.attributes["gpu.memory"] = {std::to_string(card->memory.count())};
  node.attributes["gpu.free"] = {std::to_string(card->free.count())};
  return node;
}

}  // namespace mete::core
