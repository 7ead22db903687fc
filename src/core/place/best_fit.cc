// SPDX-License-Identifier: Apache-2.0
// The cards with the least room left: keeps empty cards empty for jobs that need a whole one. Among
// equals (whole cards always leave nothing) the smallest card, so that large ones remain for
// requests that fit only there.
#include <tuple>

#include "core/place/policy.h"

namespace mete::core {

void best_fit(std::vector<Fit>& fits, std::size_t wanted) {
  keep_first(fits, wanted, [](const Fit& a, const Fit& b) {
    return std::tie(a.left, a.bytes, a.index) < std::tie(b.left, b.bytes, b.index);
  });
}

}  // namespace mete::core
