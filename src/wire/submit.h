// SPDX-License-Identifier: Apache-2.0
// POST /v1/jobs, as sent by `mete submit` and answered by the daemon. A request says what to run
// and how, never for whom: uid, user, gid and groups come from the socket, and the names of
// contents (Detached::environment, ::script) from the daemon, which hashes them. Words that are not
// UTF-8 (arguments, paths, environment, script) arrive byte for byte.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "core/job/job.h"
#include "wire/job.h"

namespace mete::wire {

struct SubmitRequest {
  core::JobSpec spec;                    // `detached` is present; `key` is a field of the request
  std::vector<std::string> environment;  // "NAME=VALUE", no NUL in it
  std::string script;                    // for the command's first word; "": a program
  bool wait = true;
};
std::string encode(const SubmitRequest& request);
Result<SubmitRequest> decode_submit_request(std::string_view json);

// Either kind, read once: with "detached" in the job it is a submit.
using JobRequest = std::variant<RunRequest, SubmitRequest>;
Result<JobRequest> decode_job_request(std::string_view json);

// From the answer to GET /v1/version: whether two requests with one key are one job.
bool knows_keys(std::string_view version);

// A long command is a content like environment and script: its words, each ended by NUL.
inline constexpr std::size_t kLongCommand = 4096;  // bytes, NULs included
std::string blob_of(const std::vector<std::string>& words);
std::vector<std::string> words_in(std::string_view blob);
// What lists show for a long command: its beginning.
std::vector<std::string> beginning_of(const std::vector<std::string>& command);

// {"schema":"mete.submit/1","at":T,"id":"12","elements":100}, see docs/formats/submit.schema.json.
struct SubmitReply {
  core::JobId id;
  std::size_t elements = 0;  // of the array; 0: not an array
  std::string note = {};     // for the user: what the job cannot have here
  bool operator==(const SubmitReply&) const = default;
};
std::string encode(const SubmitReply& reply, WallTime at);
Result<SubmitReply> decode_submit_reply(std::string_view json);

}  // namespace mete::wire
