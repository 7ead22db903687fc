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
    "keep waiting jobs from starting",
    "mete hold ID... [-o json]",
    "mete hold 12\n"
    "mete release 12             # allow it to start",
    "A held job keeps its number, and its position in the queue once it is released. A running job "
    "cannot be held; mete requeue puts it back into the queue.",
    kHoldOptions,
    Rest::kWords,
    run_hold,
};

}  // namespace mete::cli
