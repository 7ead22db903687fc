// SPDX-License-Identifier: Apache-2.0
// `mete requeue ID...`: puts jobs back in line: what has ended runs again, what runs is ended
// first.
#include <array>

#include "cli/job_change.h"
#include "cli/verbs.h"

namespace mete::cli {

namespace {

constexpr std::array kRequeueOptions{kOutputOption};

int run_requeue(const Parsed& parsed, const Output& output) {
  return change_jobs({"requeue", "POST", "/requeue", "", "in line again"}, parsed.rest, output);
}

}  // namespace

const Verb kRequeueVerb{
    "requeue",
    "put jobs back into the queue, to run again",
    "mete requeue ID... [-o json]",
    "mete requeue 12\n"
    "mete requeue 12_3 12_7      # two jobs of an array",
    "An ended job runs again, as it was submitted. A running job is ended first (SIGTERM, then "
    "SIGKILL after a grace period) and waits again. The job keeps its number; its attempt counter "
    "increases. Works for jobs of mete submit only.",
    kRequeueOptions,
    Rest::kWords,
    run_requeue,
};

}  // namespace mete::cli
