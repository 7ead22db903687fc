// SPDX-License-Identifier: Apache-2.0
#include "serve/reply.h"

namespace mete::serve {

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return 400;
    case ErrorCode::kNotFound:
      return 404;
    case ErrorCode::kDenied:
      return 403;
    case ErrorCode::kBusy:
      return 409;
    case ErrorCode::kExhausted:
      return 503;
    case ErrorCode::kInfeasible:
      return 422;
    case ErrorCode::kUnsupported:
      return 501;
    case ErrorCode::kIo:
    case ErrorCode::kCorrupt:
      return 500;
  }
  return 500;
}

Error no_such_path(const net::Request& request) {
  if (request.path.starts_with("/v") && !request.path.starts_with("/v1/"))
    return Error::unsupported("this daemon speaks version 1 of the interface")
        .with_evidence(request.method + " " + base::quote(request.path))
        .with_hint("mete daemon stop; the next command starts the daemon that belongs to it");
  return Error::not_found("there is no " + request.method + " " + base::quote(request.path));
}

Error no_such_job(core::JobId id) {
  return Error::not_found("there is no job " + to_string(id)).with_hint("mete ps lists your jobs");
}

Error not_yours(const core::Job& job, core::JobId asked, const std::string& user) {
  return Error::denied("job " + to_string(asked) + " is " + job.spec->user + "'s")
      .with_evidence("you are " + user)
      .with_hint("ask " + job.spec->user + " or an administrator; mete ps --mine lists your jobs");
}

Error not_on_disk() {
  return Error::exhausted("the disk with mete's state is full")
      .with_hint("make room there; running jobs go on");
}

Error explained(Error error, const MachineReading& machine) {
  if (error.code != ErrorCode::kInfeasible || !machine.unread) return error;
  const Error& why = *machine.unread;
  error.evidence = why.message + (why.evidence.empty() ? "" : ": " + why.evidence);
  if (!why.hint.empty()) error.hint = why.hint;
  if (why.code == ErrorCode::kBusy) {  // the driver may come back
    error.code = ErrorCode::kExhausted;
    error.message = "the cards cannot be read at the moment";
  }
  return error;
}

}  // namespace mete::serve
