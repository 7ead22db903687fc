// SPDX-License-Identifier: Apache-2.0
// The node with the least left, as the FGD paper's simulator computes it: CPU relative to 128 cores
// and cards relative to eight count half each, cut to a whole percent. On the node the tightest
// card.
#include "core/cluster/policy.h"
#include "core/cluster/scan.h"

namespace mete::core::cluster {

namespace {

constexpr double kMostCpu = 128000;
constexpr double kMostShare = 8000;

Way weigh(const Shape& shape, const Kind& kind) {
  const double asked =
      kind.ask.cards == 0 ? 0.0 : static_cast<double>(kind.ask.cards) * kind.share(shape.group);
  double left = static_cast<double>(shape.cpu - kind.ask.cpu_milli) / kMostCpu * 0.5;
  left += (shape.idle - asked) / kMostShare * 0.5;
  const auto percent = static_cast<std::int64_t>((1.0 - left) * 100.0);
  return {-percent, static_cast<std::uint8_t>(tightest(shape, kind))};
}

}  // namespace

std::unique_ptr<NodePolicy> make_best_fit() { return std::make_unique<Weighing<weigh>>(); }

}  // namespace mete::core::cluster
