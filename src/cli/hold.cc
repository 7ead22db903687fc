// SPDX-License-Identifier: Apache-2.0
// `mete hold ID...`: keeps jobs that wait from starting, until they are released.
#include <array>

#include "cli/job_change.h"
#include "cli/verbs.h"

namespace mete::cli {

namespace {

constexpr std::array kHoldOptions{kOutputOption};

int run_hold(const Parsed& parsed, const Output& output) {
  return change_jobs({"hold", "POST", "/hold", "", "held"}, parsed.rest, output);
}

}  // namespace

const Verb kHoldVerb{
    "hold",
    "keep jobs that wait from starting",
    "mete hold ID... [-o json]",
    "mete hold 12\n"
    "mete release 12             # and they may start again",
    "Held jobs keep their number, and their place once they are released. A job that runs cannot "
    "be\n"
    "held; mete requeue puts it back in line.",
    kHoldOptions,
    Rest::kWords,
    run_hold,
};

}  // namespace mete::cli
