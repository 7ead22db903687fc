// SPDX-License-Identifier: Apache-2.0
// The cards with the lowest index: predictable, and what users do by hand.
#include "core/place/policy.h"

namespace mete::core {

void first_fit(std::vector<Fit>& fits, std::size_t wanted) {
  keep_first(fits, wanted, [](const Fit& a, const Fit& b) { return a.index < b.index; });
}

}  // namespace mete::core
