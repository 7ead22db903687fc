// SPDX-License-Identifier: Apache-2.0
// See unasked.h.
#include "node/unasked.h"

#include <algorithm>
#include <utility>

#include "abi/grant.h"

namespace mete::node {

Unasked::Verdict Unasked::see(const Holding& now) {
  const std::uint64_t wanted = now.held + abi::units_for(abi::kHeadroomBytes);
  const std::uint64_t beyond = now.held > 0 && wanted > now.most ? wanted - now.most : 0;
  const std::uint64_t charged = now.least + now.lent;
  const bool is_calm = now.held > 0 && now.is_settled && now.least == now.most;
  same_ = is_calm && now.held == held_ && charged == charged_ ? std::min(same_ + 1, kSame) : 0;
  held_ = is_calm ? now.held : 0;
  charged_ = charged;
  return {std::min(beyond, std::exchange(excess_, beyond)),
          same_ == kSame && now.least > wanted ? now.least - wanted : 0};
}

}  // namespace mete::node
