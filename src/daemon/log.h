// SPDX-License-Identifier: Apache-2.0
// The form of an error in the daemon's log, and in the trouble that users see.
#pragma once

#include <string>

#include "base/result.h"

namespace mete::daemon {

inline std::string in_one_line(const Error& error) {
  return error.message + (error.evidence.empty() ? "" : " (" + error.evidence + ")");
}

}  // namespace mete::daemon
