// SPDX-License-Identifier: Apache-2.0
// The options of `mete sweep` and of its subverbs: one table, and who takes which of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/options.h"
#include "cli/submit_job.h"

namespace mete::cli {

std::span<const OptionSpec> sweep_options();
// "ls", "show", …, without aliases.
std::vector<std::string_view> sweep_words();

// The subverb that a word names, aliases resolved ("cancel" is "stop"); "": none.
std::string_view sweep_subverb(std::string_view word);
// Refuses options that the subverb does not take. "": of `mete sweep -- COMMAND`.
Result<void> check_sweep_options(std::string_view subverb, const Parsed& parsed);

// The options that are those of each trial's job, as words of `mete submit`. --gpu auto is left
// out.
std::vector<Word> trial_words(const Parsed& parsed);
bool wants_auto_gpu(const Parsed& parsed);

}  // namespace mete::cli
