// SPDX-License-Identifier: Apache-2.0
// What mete can do: one Verb per file of this folder (job_change.cc, park.cc and drain.cc have
// more), listed in verbs.cc. A Verb says how it is used, so that help, man pages' tests and
// completions read the same table, and holds the function that does it.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "cli/options.h"
#include "cli/output.h"

namespace mete::cli {

struct Verb {
  std::string_view name;
  std::string_view summary;   // a few words for the list of verbs
  std::string_view usage;     // "mete cap --gpu SHARE [options] [--] command [argument...]"
  std::string_view examples;  // lines, shown first by --help
  std::string_view about;     // paragraphs, separated by an empty line; --help wraps them
  std::span<const OptionSpec> options;  // without -h, which every verb has
  Rest rest;
  int (*run)(const Parsed& parsed, const Output& output);
  std::vector<std::string_view> words = {};    // for completion: what may follow
  std::vector<std::string_view> aliases = {};  // understood as well
};

extern const Verb kAdviseVerb;
extern const Verb kAttachVerb;
extern const Verb kCancelVerb;
extern const Verb kCapVerb;
extern const Verb kCardsVerb;
extern const Verb kCompletionVerb;
extern const Verb kConfigVerb;
extern const Verb kDaemonVerb;
extern const Verb kDemoVerb;
extern const Verb kDoctorVerb;
extern const Verb kDrainVerb;
extern const Verb kEventsVerb;
extern const Verb kExplainVerb;
extern const Verb kHelpVerb;
extern const Verb kHoldVerb;
extern const Verb kKernelVerb;
extern const Verb kParkVerb;
extern const Verb kUnparkVerb;
extern const Verb kLogsVerb;
extern const Verb kPlaceVerb;
extern const Verb kPriorityVerb;
extern const Verb kPsVerb;
extern const Verb kQuotaVerb;
extern const Verb kReleaseVerb;
extern const Verb kReportVerb;
extern const Verb kRequeueVerb;
extern const Verb kReserveVerb;
extern const Verb kRunVerb;
extern const Verb kSelftestVerb;  // src/cli/selftest.cc
extern const Verb kShowVerb;
extern const Verb kSimulateVerb;
extern const Verb kSlurmVerb;
extern const Verb kStatsVerb;
extern const Verb kTopVerb;
extern const Verb kUndrainVerb;
extern const Verb kSubmitVerb;
extern const Verb kSweepVerb;
extern const Verb kVersionVerb;
extern const Verb kWaitVerb;
extern const Verb kWhereVerb;

const std::vector<const Verb*>& verbs();
// nullptr when there is none.
const Verb* find_verb(std::string_view name);

// Why a name that is no verb is refused: planned and not implemented, the name that another program
// has for it (squeue, nvidia-smi), or unknown, with the nearest verb.
Error no_such_verb(std::string_view name);

// -o FORMAT, for verbs that print documents.
inline constexpr OptionSpec kOutputOption{"--output", "FORMAT",
                                          "output format: text (default) or json", "-o"};

}  // namespace mete::cli
