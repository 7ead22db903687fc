// SPDX-License-Identifier: Apache-2.0
// The node with the most left, and its emptiest cards: neighbours are avoided as long as there is
// room.
#include "core/cluster/policy.h"
#include "core/cluster/scan.h"

namespace mete::core::cluster {

namespace {

// Cards first; CPU decides between nodes with equal cards left.
Way weigh(const Shape& shape, const Kind& /*kind*/) {
  return {-(static_cast<std::int64_t>(shape.idle) * kMaxCpuMilli + shape.cpu), 0};
}

}  // namespace

std::unique_ptr<NodePolicy> make_spread() { return std::make_unique<Weighing<weigh>>(); }

}  // namespace mete::core::cluster
