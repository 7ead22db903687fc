// SPDX-License-Identifier: Apache-2.0
// See verbs.h.
#include "cli/verbs.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace mete::cli {

namespace {

// Verbs of the design that are not implemented yet. Refusing them by name is kinder than "unknown".
constexpr std::array<std::string_view, 3> kPlanned{"report", "service", "sweep"};

}  // namespace

const std::vector<const Verb*>& verbs() {
  static const std::vector<const Verb*> kVerbs{
      &kRunVerb,      &kSubmitVerb, &kPsVerb,       &kShowVerb,    &kExplainVerb,    &kLogsVerb,
      &kAttachVerb,   &kWaitVerb,   &kCancelVerb,   &kHoldVerb,    &kReleaseVerb,    &kRequeueVerb,
      &kParkVerb,     &kUnparkVerb, &kPriorityVerb, &kEventsVerb,  &kStatsVerb,      &kTopVerb,
      &kCardsVerb,    &kDrainVerb,  &kUndrainVerb,  &kQuotaVerb,   &kReserveVerb,    &kDaemonVerb,
      &kCapVerb,      &kWhereVerb,  &kPlaceVerb,    &kAdviseVerb,  &kSimulateVerb,
#ifdef METE_HAVE_SELFTEST
      &kSelftestVerb,
#endif
      &kDemoVerb,     &kDoctorVerb, &kConfigVerb,   &kVersionVerb, &kCompletionVerb, &kHelpVerb,
  };
  return kVerbs;
}

const Verb* find_verb(std::string_view name) {
  for (const Verb* verb : verbs())
    if (verb->name == name ||
        std::find(verb->aliases.begin(), verb->aliases.end(), name) != verb->aliases.end())
      return verb;
  return nullptr;
}

Error no_such_verb(std::string_view name) {
  if (std::find(kPlanned.begin(), kPlanned.end(), name) != kPlanned.end())
    return Error::unsupported("mete " + std::string(name) + " is not implemented yet")
        .with_hint("mete help --all lists the verbs");
  std::vector<std::string_view> names;
  for (const Verb* verb : verbs()) names.push_back(verb->name);
  const std::string_view near = base::nearest(name, names);
  return Error::invalid("there is no verb " + base::quote(name))
      .with_hint(near.empty() ? "mete help lists the verbs"
                              : "did you mean mete " + std::string(near) + "?");
}

}  // namespace mete::cli
