// SPDX-License-Identifier: Apache-2.0
// How an error is written in the daemon's log, and where a user sees it as a trouble.
#pragma once

#include <string>

#include "base/result.h"

namespace mete::daemon {

inline std::string in_one_line(const Error& error) {
  return error.message + (error.evidence.empty() ? "" : " (" + error.evidence + ")");
}

}  // namespace mete::daemon
