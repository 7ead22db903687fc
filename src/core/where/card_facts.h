// SPDX-License-Identifier: Apache-2.0
// This machine as the query language sees it: one node for each card, so that `gpu.type == T4 and
// gpu.memory >= 100G` is not true of a machine that has a small T4 beside a large H200. The same
// for `mete where` and for --where.
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
  Bytes memory;      // gpu.memory: all that is built in
  Bytes free;        // gpu.free: what could be granted now
};

// `card`: none on a machine that has none. `cards`: gpu.count of the machine; `jobs`:
// runningTasksCount, those that have something of its cards.
NodeFacts facts_of(const std::optional<CardFacts>& card, std::size_t cards, std::uint64_t jobs);

}  // namespace mete::core
