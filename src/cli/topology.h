// SPDX-License-Identifier: Apache-2.0
// How the cards of a machine reach one another and its processors. Pure: a document in, text out.
#pragma once

#include <optional>
#include <string>

#include "wire/cards.h"

namespace mete::cli {

// A line each for NVLinks and NUMA nodes, where there is more than one card and it is known:
//   NVLink: cards 0-3, 18 between any two; 4-7, 18 between any two
//   NUMA: cards 0-3 at node 0, 4-7 at node 1
// "": nothing to say.
std::string topology_lines(const wire::CardsDocument& document);

// The same as a table: for each pair NV18, PCI where there are no NVLinks, then the NUMA node.
std::string topology_table(const wire::CardsDocument& document, std::optional<std::size_t> width);

}  // namespace mete::cli
