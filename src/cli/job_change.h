// SPDX-License-Identifier: Apache-2.0
// `cancel`, `hold`, `release`, `requeue` and `priority` ask for one change of each job that is
// named, and print what has changed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/job/job.h"

namespace mete::cli {

// "job 12 is cancelled", "12 jobs of 12 are held", "job 12: nothing to change".
std::string changed_text(core::JobId asked, const std::vector<core::JobId>& changed,
                         std::string_view done);

}  // namespace mete::cli
