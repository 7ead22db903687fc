// SPDX-License-Identifier: Apache-2.0
// Files that are installed with mete, in share/mete: tables, the kernel of notebooks.
#pragma once

#include <string>

#include "base/result.h"

namespace mete::cli {

// The path of share/mete/NAME, found relative to the running program, in the build tree and when
// installed. not_found: it is missing.
Result<std::string> shipped_path(const std::string& name);

}  // namespace mete::cli
