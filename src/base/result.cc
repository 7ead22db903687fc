// SPDX-License-Identifier: Apache-2.0
// Names of error codes, and errno turned into an Error. Never loses the system's own message.
#include "base/result.h"

#include <cerrno>
#include <system_error>

namespace mete::base {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return "invalid";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kDenied:
      return "denied";
    case ErrorCode::kBusy:
      return "busy";
    case ErrorCode::kExhausted:
      return "exhausted";
    case ErrorCode::kInfeasible:
      return "infeasible";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kCorrupt:
      return "corrupt";
    case ErrorCode::kUnsupported:
      return "unsupported";
  }
  METE_ASSERT(false && "unknown error code");
}

namespace {

ErrorCode code_of(int error_number) {
  switch (error_number) {
    case ENOENT:
      return ErrorCode::kNotFound;
    case EACCES:
    case EPERM:
      return ErrorCode::kDenied;
    case EAGAIN:
    case EBUSY:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
      return ErrorCode::kBusy;
    case ENOSPC:
    case EDQUOT:
      return ErrorCode::kExhausted;
    default:
      return ErrorCode::kIo;
  }
}

}  // namespace

Error Error::from_errno(std::string_view what, int error_number) {
  // Not strerror(), which shares one buffer between threads.
  return {code_of(error_number),
          std::string(what) + ": " + std::generic_category().message(error_number)};
}

Error Error::within(std::string_view context) && {
  message = std::string(context) + ": " + message;
  return std::move(*this);
}

}  // namespace mete::base
