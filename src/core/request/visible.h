// SPDX-License-Identifier: Apache-2.0
// Which cards of the machine the caller may use, by the CUDA_VISIBLE_DEVICES of our own
// environment, as set by Slurm or a script. A request is resolved among these cards, in their
// order. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/request/resolve.h"

namespace mete::core {

// nullopt: the variable is not set, every card is visible. Entries are indices, UUIDs or beginnings
// of UUIDs; as in CUDA, the list ends at the first entry that names no card (-1, a number too
// large). An entry that repeats a card, an ambiguous entry and MIG slices are errors: a guess could
// use another user's card.
Result<std::vector<Card>> visible_cards(const std::vector<Card>& cards,
                                        const std::optional<std::string>& cuda_visible_devices);

}  // namespace mete::core
