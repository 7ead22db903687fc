// SPDX-License-Identifier: Apache-2.0
// What `mete submit --print` prints: the jobs as a job file that means the same again, or as the
// document mete.submit-plan/1 with the same keys. Times and paths are resolved, shares are not:
// which card, and so how many bytes, is the daemon's to say.
#pragma once

#include <string>

#include "cli/submit_plan.h"

namespace mete::cli {

std::string plan_as_yaml(const SubmitPlan& plan);
std::string plan_as_json(const SubmitPlan& plan);

}  // namespace mete::cli
