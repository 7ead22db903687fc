// SPDX-License-Identifier: Apache-2.0
// What `cancel`, `hold`, `release`, `requeue` and `priority` share: one request for each job named,
// then what has changed, in words or as one document.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/output.h"
#include "core/job/job.h"
#include "runner/daemon_client.h"

namespace mete::cli {

struct JobChange {
  std::string_view verb;    // "cancel"
  std::string_view method;  // "DELETE"
  std::string_view path;    // "/hold"; "": the job itself
  std::string body;         // JSON; "": none
  std::string done;         // "cancelled": what a job is then
  // An error that is none to this verb: what to say instead; "": it is one. nullptr: they all are.
  std::function<std::string(runner::DaemonClient& client, core::JobId id)> forgiven = nullptr;
};

// The exit code.
int change_jobs(const JobChange& change, const std::vector<std::string>& words,
                const Output& output);

// "job 12 is cancelled", "12 jobs of 12 are held", "job 12: nothing to change".
std::string changed_text(core::JobId asked, const std::vector<core::JobId>& changed,
                         std::string_view done);

}  // namespace mete::cli
