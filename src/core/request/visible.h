// SPDX-License-Identifier: Apache-2.0
// Which of a machine's cards the caller was given, by CUDA_VISIBLE_DEVICES as it stands in our own
// environment. Under Slurm or in a script it says which cards are ours to use at all; a request is
// resolved among those, in that order. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/request/resolve.h"

namespace mete::core {

// nullopt: the variable is not set, every card is visible. Entries are indices, UUIDs or beginnings
// of UUIDs; as in CUDA, the list ends at the first entry that names no card (-1, a number too
// large). An entry that names a card a second time, an ambiguous one and MIG slices are errors:
// guessing could mean somebody else's card.
Result<std::vector<Card>> visible_cards(const std::vector<Card>& cards,
                                        const std::optional<std::string>& cuda_visible_devices);

}  // namespace mete::core
