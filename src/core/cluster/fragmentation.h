// SPDX-License-Identifier: Apache-2.0
// Fragmentation as the FGD paper defines it (Weng et al., USENIX ATC 2023): the idle share of a
// node that a random request of the mix could not use. A request cannot use cards with less left
// than it asks of each; nor any card if CPU, type or the number of cards do not suffice, or if it
// is CPU-only. The expectation is over the typical requests: by descending count up to 95 % of
// them; memory is ignored.
//
// Sums are made in the order and by the causes of the published code: the `fgd` policy cuts scores
// to whole percents, and where fragmentation does not grow the last bit decides between 49 and 50.
#pragma once

#include <cstdint>
#include <vector>

#include "core/cluster/policy.h"

namespace mete::core::cluster {

class Fragmentation {
 public:
  Fragmentation() = default;
  Fragmentation(const Cluster& cluster, const Mix& mix);

  // In thousandths of a card.
  double of(const Shape& shape) const;

 private:
  struct Typical {
    double frequency = 0;
    std::int32_t cpu = 0;
    std::uint32_t cards = 0;
    std::vector<std::uint16_t> share_on;  // by group; kNever: the type is not allowed
  };

  std::vector<Typical> typical_;
};

}  // namespace mete::core::cluster
