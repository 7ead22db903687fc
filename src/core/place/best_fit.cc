// SPDX-License-Identifier: Apache-2.0
// The cards on which the least room is left: keeps empty cards empty, for those who need a whole
// one. Where the same is left (always so for whole cards, which leave nothing) the smallest card,
// so that large ones remain for what only fits there.
#include <tuple>

#include "core/place/policy.h"

namespace mete::core {

void best_fit(std::vector<Fit>& fits, std::size_t wanted) {
  keep_first(fits, wanted, [](const Fit& a, const Fit& b) {
    return std::tie(a.left, a.bytes, a.index) < std::tie(b.left, b.bytes, b.index);
  });
}

}  // namespace mete::core
