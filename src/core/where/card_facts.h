// SPDX-License-Identifier: Apache-2.0
// This machine as the query language sees it, for `mete where` and --where: one node for each card,
// so that `gpu.type == T4 and gpu.memory >= 100G` is not true of a machine that has a small T4
// beside a large H200.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "core/where/query.h"

namespace mete::core {

struct CardFacts {
  std::string type;  // gpu.type
  Bytes memory;      // gpu.memory: all memory of the card
  Bytes free;        // gpu.free: what could be granted now
};

// `card`: absent on a machine without cards. `cards`: gpu.count of the machine; `jobs`:
// runningTasksCount, the jobs with a grant on its cards.
NodeFacts facts_of(const std::optional<CardFacts>& card, std::size_t cards, std::uint64_t jobs);

}  // namespace mete::core
