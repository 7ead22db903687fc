// SPDX-License-Identifier: Apache-2.0
// Prints a message to the user: one line, without its newline. To stderr of `mete run`, or to the
// log of a job without a terminal.
#pragma once

#include <functional>
#include <string_view>

namespace mete::runner {

using Talk = std::function<void(std::string_view line)>;

}  // namespace mete::runner
