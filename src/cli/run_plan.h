// SPDX-License-Identifier: Apache-2.0
// The request of `mete run` as a value: words in, a plan out. Changes nothing and contacts nothing:
// the daemon decides on the cards.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "cli/options.h"
#include "runner/job_plan.h"
#include "wire/job.h"

namespace mete::cli {

struct RunPlan {
  runner::JobPlan job;  // its cards come with the grant
  bool wait = true;
  bool exec = false;
  bool quiet = false;
};

std::span<const OptionSpec> run_options();

Result<RunPlan> make_run_plan(const Parsed& parsed);

// The request to the daemon.
wire::RunRequest request_of(const RunPlan& plan);

// The document mete.run/1, which says what was granted.
std::string grant_json(const runner::JobPlan& plan, const std::string& id);

}  // namespace mete::cli
