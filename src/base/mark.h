// SPDX-License-Identifier: Apache-2.0
// An error that points into a text, for terminals.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace mete::base {

// Two lines: as much of the text as fits around the character at byte `at`, made printable and with
// blanks as spaces, and a ^ below that character. `at` may be one past the end of the text.
std::string marked(std::string_view text, std::size_t at);

}  // namespace mete::base
