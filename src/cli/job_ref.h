// SPDX-License-Identifier: Apache-2.0
// Jobs as people name them:
//
//   ref := ( number | "@" [ "~" back ] ) [ "_" element | "_[" range { "," range } "]" ]
//
// "12", "12_3", "12_[1-3,7]"; "@" is my last job, "@~1" the one before. Last is what `mete submit`
// printed last for this user, in whichever terminal: it is kept in a small file of the state folder
// (docs/formats/last-jobs.md), for each daemon apart, since job 12 of one is not job 12 of another.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/job/job.h"

namespace mete::cli {

struct JobRef {
  std::uint64_t number = 0;             // 0: one of the last
  std::uint32_t back = 0;               // then: so many before the last
  std::vector<std::uint32_t> elements;  // of an array; empty: the whole job
  bool operator==(const JobRef&) const = default;
};
// Text alone: nothing is looked up.
Result<JobRef> parse_job_ref(std::string_view text);
std::string to_string(const JobRef& ref);

inline constexpr std::uint32_t kMaxBack = 99;

// What it names at the daemon of that socket, a job for each element. not_found: no such last job.
Result<std::vector<core::JobId>> resolve(const JobRef& ref, const std::string& socket);
// Both for all words of a command line; what is named twice is there once.
Result<std::vector<core::JobId>> resolve_jobs(const std::vector<std::string>& words,
                                              const std::string& socket);

// `number` is the last job from now on.
Result<void> remember_job(std::uint64_t number, const std::string& socket);

}  // namespace mete::cli
