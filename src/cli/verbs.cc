// SPDX-License-Identifier: Apache-2.0
// See verbs.h.
#include "cli/verbs.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace mete::cli {

namespace {

struct Planned {
  std::string_view names;  // separated by spaces
  std::string_view comes_with;
};

// The verbs that the design names and that are not built yet. Refusing them by name is kinder than
// "unknown".
constexpr std::array<Planned, 2> kPlanned{{
    {"report sweep", "it comes with the queue"},
    {"service", "it comes with services"},
}};

const Planned* find_planned(std::string_view name) {
  for (const Planned& planned : kPlanned) {
    const std::vector<std::string_view> names = base::split(planned.names, ' ');
    if (std::find(names.begin(), names.end(), name) != names.end()) return &planned;
  }
  return nullptr;
}

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
  if (const Planned* planned = find_planned(name); planned != nullptr) {
    return Error::unsupported("mete " + std::string(name) + " is not built yet")
        .with_evidence(std::string(planned->comes_with))
        .with_hint("mete run --gpu 8G -- command waits for room and runs a program there today");
  }
  std::vector<std::string_view> names;
  for (const Verb* verb : verbs()) names.push_back(verb->name);
  const std::string_view near = base::nearest(name, names);
  return Error::invalid("there is no verb " + base::quote(name))
      .with_hint(near.empty() ? "mete help lists the verbs"
                              : "did you mean mete " + std::string(near) + "?");
}

}  // namespace mete::cli
