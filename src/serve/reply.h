// SPDX-License-Identifier: Apache-2.0
// Answers as HTTP responses. Internal to serve/.
#pragma once

#include <string>

#include "base/exit_code.h"
#include "base/result.h"
#include "base/text.h"
#include "net/http.h"
#include "serve/machine_reading.h"
#include "wire/job.h"

namespace mete::serve {

int status_of(ErrorCode code);

inline net::Response respond(int status, std::string body) {
  net::Response response;
  response.status = status;
  response.body = std::move(body);
  return response;
}

inline net::Response refuse(const Error& error) {
  return respond(status_of(error.code), wire::encode_error(error, base::exit_code_of(error.code)));
}

// For text from a client: it is invalid, not corrupt data of ours.
inline net::Response refuse_words(Error error) {
  if (error.code == ErrorCode::kCorrupt) error.code = ErrorCode::kInvalid;
  return refuse(error);
}

Error no_such_path(const net::Request& request);
Error no_such_job(core::JobId id);
// To a user who asks for what only the user of the job and administrators may have.
Error not_yours(const core::Job& job, core::JobId asked, const std::string& user);
// Decisions made while the disk is full may yet be undone: no client may see them.
Error not_on_disk();
// If no card was ever read, the driver is the reason, not the request.
Error explained(Error error, const MachineReading& machine);

}  // namespace mete::serve
