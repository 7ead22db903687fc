// SPDX-License-Identifier: Apache-2.0
// Where a runner tells people what happens: one line, without its newline. stderr of `mete run`, or
// the log of a job that has no terminal.
#pragma once

#include <functional>
#include <string_view>

namespace mete::runner {

using Talk = std::function<void(std::string_view line)>;

}  // namespace mete::runner
