// SPDX-License-Identifier: Apache-2.0
// See verbs.h.
#include "cli/verbs.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace mete::cli {

namespace {

// Verbs of the design that are not implemented yet. Refusing them by name is kinder than "unknown".
constexpr std::array<std::string_view, 1> kPlanned{"service"};

// Names of other programs for what mete does, and the verb that does it.
struct Foreign {
  std::string_view name;
  std::string_view verb;
};
constexpr std::array kForeign{
    Foreign{"status", "mete ps, or mete daemon status"},
    Foreign{"queue", "mete ps"},
    Foreign{"list", "mete ps"},
    Foreign{"jobs", "mete ps"},
    Foreign{"squeue", "mete ps"},
    Foreign{"qstat", "mete ps"},
    Foreign{"bjobs", "mete ps"},
    Foreign{"history", "mete ps -a"},
    Foreign{"sacct", "mete ps -a"},
    Foreign{"kill", "mete cancel"},
    Foreign{"stop", "mete cancel"},
    Foreign{"scancel", "mete cancel"},
    Foreign{"qdel", "mete cancel"},
    Foreign{"bkill", "mete cancel"},
    Foreign{"delete", "mete cancel"},
    Foreign{"remove", "mete cancel"},
    Foreign{"rm", "mete cancel"},
    Foreign{"srun", "mete run"},
    Foreign{"exec", "mete run"},
    Foreign{"start", "mete run, mete submit or mete daemon start"},
    Foreign{"sbatch", "mete submit"},
    Foreign{"qsub", "mete submit"},
    Foreign{"bsub", "mete submit"},
    Foreign{"batch", "mete submit"},
    Foreign{"enqueue", "mete submit"},
    Foreign{"restart", "mete requeue, or mete daemon restart"},
    Foreign{"rerun", "mete requeue"},
    Foreign{"retry", "mete requeue"},
    Foreign{"scontrol", "mete show"},
    Foreign{"inspect", "mete show"},
    Foreign{"info", "mete show, or mete cards"},
    Foreign{"nvidia-smi", "mete cards"},
    Foreign{"smi", "mete cards"},
    Foreign{"gpus", "mete cards"},
    Foreign{"gpu", "mete cards"},
    Foreign{"devices", "mete cards"},
    Foreign{"nodes", "mete cards"},
    Foreign{"sinfo", "mete cards"},
    Foreign{"gpustat", "mete top"},
    Foreign{"htop", "mete top"},
    Foreign{"nvtop", "mete top"},
    Foreign{"nvitop", "mete top"},
    Foreign{"watch", "mete top"},
    Foreign{"log", "mete logs"},
    Foreign{"tail", "mete logs -f"},
    Foreign{"pause", "mete hold, or mete park for a running job"},
    Foreign{"suspend", "mete park"},
    Foreign{"resume", "mete release, or mete unpark for a parked job"},
    Foreign{"continue", "mete release, or mete unpark for a parked job"},
    Foreign{"nice", "mete priority"},
    Foreign{"why", "mete explain"},
    Foreign{"limit", "mete cap"},
    Foreign{"check", "mete doctor"},
    Foreign{"tune", "mete sweep"},
    Foreign{"scan", "mete sweep"},
    Foreign{"optuna", "mete sweep"},
};

}  // namespace

const std::vector<const Verb*>& verbs() {
  static const std::vector<const Verb*> kVerbs{
      &kRunVerb,      &kSubmitVerb,   &kPsVerb,       &kShowVerb,   &kExplainVerb, &kLogsVerb,
      &kAttachVerb,   &kWaitVerb,     &kCancelVerb,   &kHoldVerb,   &kReleaseVerb, &kRequeueVerb,
      &kParkVerb,     &kUnparkVerb,   &kPriorityVerb, &kEventsVerb, &kStatsVerb,   &kTopVerb,
      &kCardsVerb,    &kDrainVerb,    &kUndrainVerb,  &kQuotaVerb,  &kReserveVerb, &kDaemonVerb,
      &kCapVerb,      &kSweepVerb,    &kKernelVerb,   &kSlurmVerb,  &kWhereVerb,   &kPlaceVerb,
      &kAdviseVerb,   &kSimulateVerb,
#ifdef METE_HAVE_SELFTEST
      &kSelftestVerb,
#endif
      &kDemoVerb,     &kDoctorVerb,   &kReportVerb,   &kConfigVerb, &kVersionVerb, &kCompletionVerb,
      &kHelpVerb,
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
  const auto foreign = std::find_if(kForeign.begin(), kForeign.end(), [&](const Foreign& known) {
    return known.name == base::to_lower(name);
  });
  if (foreign != kForeign.end())
    return Error::invalid("there is no verb " + base::quote(name))
        .with_hint("did you mean " + std::string(foreign->verb) + "?");
  std::vector<std::string_view> names;
  for (const Verb* verb : verbs()) names.push_back(verb->name);
  const std::string_view near = base::nearest(name, names);
  return Error::invalid("there is no verb " + base::quote(name))
      .with_hint(near.empty() ? "mete help lists the verbs"
                              : "did you mean mete " + std::string(near) + "?");
}

}  // namespace mete::cli
