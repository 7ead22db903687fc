// SPDX-License-Identifier: Apache-2.0
// What the query language knows about a node of a cluster: its attributes, and of its cards
// gpu.type, gpu.count, gpu.memory and gpu.free (of the card with the most left).
#pragma once

#include "core/cluster/cluster.h"
#include "core/where/query.h"

namespace mete::simulate {

core::NodeFacts facts_of(const core::cluster::Node& node);

}  // namespace mete::simulate
