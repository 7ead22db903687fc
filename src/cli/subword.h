// SPDX-License-Identifier: Apache-2.0
// For verbs with a second word: `mete daemon status`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mete::cli {

// The first word of `rest` if it is one of `words`; else an error with the nearest. `verb` is for
// errors.
Result<std::string> sub_word(std::string_view verb, const std::vector<std::string>& rest,
                             const std::vector<std::string_view>& words);

// Refuses more than `most` words.
Result<void> no_more_than(std::size_t most, const std::vector<std::string>& rest);

}  // namespace mete::cli
