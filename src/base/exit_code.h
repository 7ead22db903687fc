// SPDX-License-Identifier: Apache-2.0
// The exit codes of our programs, besides those of the programs they run: one table for the command
// line and for errors over HTTP.
#pragma once

#include "base/result.h"

namespace mete::base {

inline constexpr int kExitOk = 0;
inline constexpr int kExitUsage = 64;
inline constexpr int kExitBadFile = 65;
inline constexpr int kExitNoSuch = 66;  // no such job, card, reservation, user
inline constexpr int kExitInfeasible = 69;
inline constexpr int kExitNoRoom = 75;
inline constexpr int kExitDenied = 77;
inline constexpr int kExitTimeout = 124;
inline constexpr int kExitFailed = 125;
inline constexpr int kExitCannotRun = 126;
inline constexpr int kExitNotFound = 127;

// invalid and unsupported 64, not_found 66, infeasible 69, busy and exhausted 75, denied 77,
// everything else 125. not_found is about what was named: a missing part of mete is an io.
constexpr int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
    case ErrorCode::kUnsupported:
      return kExitUsage;
    case ErrorCode::kNotFound:
      return kExitNoSuch;
    case ErrorCode::kInfeasible:
      return kExitInfeasible;
    case ErrorCode::kBusy:
    case ErrorCode::kExhausted:
      return kExitNoRoom;
    case ErrorCode::kDenied:
      return kExitDenied;
    case ErrorCode::kIo:
    case ErrorCode::kCorrupt:
      break;
  }
  return kExitFailed;
}

// For programs and files that were not named by a user: one that is missing is a failure like any
// other.
constexpr int exit_code_of_failure(ErrorCode code) {
  return code == ErrorCode::kNotFound ? kExitFailed : exit_code_of(code);
}

}  // namespace mete::base
