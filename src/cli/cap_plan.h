// SPDX-License-Identifier: Apache-2.0
// What `mete cap` is asked for, as a value: words in, a plan out. Making a plan changes nothing; it
// may read the cards.
#pragma once

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/cards_reader.h"
#include "cli/options.h"
#include "core/request/resolve.h"
#include "runner/job_plan.h"

namespace mete::cli {

// The options of `mete cap`, those that are not built included.
std::span<const OptionSpec> cap_options();

Result<runner::JobPlan> make_cap_plan(const Parsed& parsed);

// The document mete.cap/1.
std::string to_json(const runner::JobPlan& plan);

}  // namespace mete::cli
