// SPDX-License-Identifier: Apache-2.0
// The cards with the most room left: programs on one card share its time, so this is fastest while
// there are enough cards. Among equals (whole cards) the largest card.
#include <tuple>

#include "core/place/policy.h"

namespace mete::core {

void spread(std::vector<Fit>& fits, std::size_t wanted) {
  keep_first(fits, wanted, [](const Fit& a, const Fit& b) {
    return std::tie(b.left, b.bytes, a.index) < std::tie(a.left, a.bytes, b.index);
  });
}

}  // namespace mete::core
