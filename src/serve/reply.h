// SPDX-License-Identifier: Apache-2.0
// Answers as HTTP has them. Internal to serve/.
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

// Of what a client sent: not our data that is damaged, but its words.
inline net::Response refuse_words(Error error) {
  if (error.code == ErrorCode::kCorrupt) error.code = ErrorCode::kInvalid;
  return refuse(error);
}

Error no_such_path(const net::Request& request);
Error no_such_job(core::JobId id);
// What the engine has decided since the disk is full may yet be undone: no client is told of it.
Error not_on_disk();
// Where no card was ever read, the reason is the driver's, not the request's.
Error explained(Error error, const MachineReading& machine);

}  // namespace mete::serve
