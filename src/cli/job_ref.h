// SPDX-License-Identifier: Apache-2.0
// The names of jobs on a command line:
//
//   ref := ( number | "@" [ "~" back ] ) [ "_" element | "_[" range { "," range } "]" ]
//
// "12", "12_3", "12_[1-3,7]"; "@" is the user's last job, "@~1" the job before. The last job is
// the one that `mete submit` printed last for this user, in any terminal. It is kept in a small
// file of the state folder (docs/formats/last-jobs.md), one for each daemon.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/job/job.h"

namespace mete::cli {

struct JobRef {
  std::uint64_t number = 0;             // 0: counted back from the last job
  std::uint32_t back = 0;               // how many jobs before the last
  std::vector<std::uint32_t> elements;  // of an array; empty: the whole job
  bool operator==(const JobRef&) const = default;
};
// Text alone: nothing is looked up.
Result<JobRef> parse_job_ref(std::string_view text);
std::string to_string(const JobRef& ref);

inline constexpr std::uint32_t kMaxBack = 99;

// The jobs that it names at the daemon of that socket, one for each element. not_found: there is no
// such last job.
Result<std::vector<core::JobId>> resolve(const JobRef& ref, const std::string& socket);
// Parses and resolves all words of a command line; a job that is named twice is there once.
Result<std::vector<core::JobId>> resolve_jobs(const std::vector<std::string>& words,
                                              const std::string& socket);

// `number` is the last job from now on.
Result<void> remember_job(std::uint64_t number, const std::string& socket);

}  // namespace mete::cli
