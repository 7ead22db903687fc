// SPDX-License-Identifier: Apache-2.0
// `mete cancel ID...`: ends jobs, wherever they are: waiting ones leave the line, running ones get
// TERM and, after a grace, KILL, with every process they ever forked.
#include <array>

#include "cli/job_change.h"
#include "cli/named_jobs.h"
#include "cli/verbs.h"
#include "wire/show.h"

namespace mete::cli {

namespace {

constexpr std::array kCancelOptions{kOutputOption};

// Cancelling twice is no mistake: a script that does so got what it wanted.
std::string cancelled_before(runner::DaemonClient& client, core::JobId id) {
  const Result<std::string> body = client.call("GET", job_target(id, "/show"));
  const Result<wire::ShowDocument> shown = body ? wire::decode_show(*body) : body.error();
  if (!shown || shown->view.job.outcome != core::Outcome::kCancelled) return "";
  return "job " + to_string(id) + " was cancelled before";
}

int run_cancel(const Parsed& parsed, const Output& output) {
  return change_jobs({"cancel", "DELETE", "", "", "cancelled", cancelled_before}, parsed.rest,
                     output);
}

}  // namespace

const Verb kCancelVerb{
    "cancel",
    "cancel waiting or running jobs",
    "mete cancel ID... [-o json]",
    "mete cancel 12\n"
    "mete cancel 12_3 13         # one job of an array, and another job\n"
    "mete cancel @               # your last job",
    "A waiting job leaves the queue. In a running job every process gets SIGTERM, and SIGKILL "
    "after a grace period. mete cancel does not wait for the end of the job; mete wait does. The "
    "number of an array stands for all its jobs. Cancelling a cancelled job again succeeds; "
    "cancelling a job that ended in another way fails with exit code 64. mete kill and mete stop "
    "are aliases.",
    kCancelOptions,
    Rest::kWords,
    run_cancel,
    {},
    {"kill", "stop"},
};

}  // namespace mete::cli
