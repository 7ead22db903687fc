// SPDX-License-Identifier: Apache-2.0
// The policies by name.
#include "core/place/policy.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"

namespace mete::core {

namespace {

struct Named {
  std::string_view name;
  Policy policy;
  void (*choose)(std::vector<Fit>&, std::size_t);
};
constexpr std::array<Named, 3> kPolicies{{{"first-fit", Policy::kFirstFit, first_fit},
                                          {"best-fit", Policy::kBestFit, best_fit},
                                          {"spread", Policy::kSpread, spread}}};

const Named& named(Policy policy) {
  const auto* entry = std::find_if(kPolicies.begin(), kPolicies.end(),
                                   [policy](const Named& each) { return each.policy == policy; });
  METE_ASSERT(entry != kPolicies.end());
  return *entry;
}

}  // namespace

std::string_view to_string(Policy policy) { return named(policy).name; }

Result<Policy> parse_policy(std::string_view text) {
  std::vector<std::string> names;
  std::vector<std::string_view> candidates;
  for (const Named& entry : kPolicies) {
    if (entry.name == text) return entry.policy;
    names.emplace_back(entry.name);
    candidates.push_back(entry.name);
  }
  const std::string_view meant = base::nearest(text, candidates);
  return Error::invalid("there is no policy " + base::quote(text))
      .with_evidence("policies: " + base::join(names, ", "))
      .with_hint("write " + std::string(meant.empty() ? candidates.front() : meant));
}

void choose(Policy policy, std::vector<Fit>& fits, std::size_t wanted) {
  METE_ASSERT(wanted <= fits.size());
  named(policy).choose(fits, wanted);
}

}  // namespace mete::core
