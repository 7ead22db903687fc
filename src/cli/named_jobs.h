// SPDX-License-Identifier: Apache-2.0
// Verbs of several jobs: `mete cancel 12 13_4 @`. Each word that is wrong gets one error, the
// others are done all the same, and the exit code is that of the first error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/output.h"
#include "core/job/job.h"
#include "runner/daemon_client.h"

namespace mete::cli {

// What went wrong on the way: said at once, remembered for the end.
class Failures {
 public:
  explicit Failures(const Output& output) : output_(output) {}
  void add(const Error& error) {
    const int code = output_.fail(error);
    if (exit_code_ == kExitOk) exit_code_ = code;
  }
  int exit_code() const { return exit_code_; }

 private:
  const Output& output_;
  int exit_code_ = kExitOk;
};

// The jobs that the words name, once each. What names none goes to `failures`.
std::vector<core::JobId> named_jobs(const std::vector<std::string>& words,
                                    const std::string& socket, Failures& failures);

// The daemon for jobs named by these words, which `verb` needs at least one of. Without a daemon:
// "no daemon runs, so there is no job 12".
Result<runner::DaemonClient> open_for_words(std::string_view verb,
                                            const std::vector<std::string>& words);

// "/v1/jobs/12_3" and what follows.
std::string job_target(core::JobId id, std::string_view rest = {});

}  // namespace mete::cli
