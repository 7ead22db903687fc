// SPDX-License-Identifier: Apache-2.0
// See job_plan.h.
#include "runner/job_plan.h"

#include "base/text.h"

namespace mete::runner {

Result<std::vector<core::CardShare>> shares_of(const std::vector<core::GrantedCard>& grant,
                                               const std::vector<core::Card>& cards) {
  if (cards.size() != grant.size())
    return Error::io("a granted card has vanished").with_hint("mete cards shows what is left");
  std::vector<core::CardShare> shares;
  for (std::size_t i = 0; i < grant.size(); ++i) {
    core::Card card = cards[i];
    card.index = grant[i].index;
    card.uuid = grant[i].uuid;
    const bool grows = !grant[i].most.is_zero();
    shares.push_back({std::move(card), grows ? grant[i].least : grant[i].bytes,
                      grows ? grant[i].most : grant[i].bytes});
  }
  return shares;
}

std::string describe(const JobPlan& plan) {
  if (plan.cards.empty()) return "no GPU";
  std::vector<std::string> parts;
  for (const core::CardShare& share : plan.cards)
    parts.push_back((share.limit > share.from ? to_string(share.from) + " and up to " : "") +
                    to_string(share.limit) + " (" + std::to_string(share.limit.count()) +
                    " bytes) on card " + std::to_string(share.card.index) + " (" + share.card.name +
                    ")");
  const std::uint32_t procs = plan.spec.request.procs;
  return base::join(parts, ", ") +
         (procs > 1 ? ", for " + std::to_string(procs) + " processes" : "");
}

}  // namespace mete::runner
