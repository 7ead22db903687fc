// SPDX-License-Identifier: Apache-2.0
// Job files: YAML in, the words of one job or of several out, each with its line and column. Keys
// are the long options without their dashes; what is not one is named with the nearest. Only the
// text is looked at. docs/formats/job-file.md has every key.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/submit_job.h"

namespace mete::cli {

inline constexpr std::size_t kMaxJobFile = 1 << 20;
inline constexpr std::size_t kMaxFileJobs = 1000;

// What a job runs: one of the three.
struct FileProgram {
  std::vector<std::string> command;
  std::string shell;                // `command:` as one text: a line for /bin/sh
  std::vector<std::string> script;  // `script:` as a path and what it is given
  std::string text;                 // `script:` as the text of one
  std::string where;
  bool is_said() const { return !where.empty(); }
};

struct FileJob {
  std::vector<Word> words;
  FileProgram program;
  std::string name;   // "": none is said
  std::string where;  // "job.yaml:3"
};

// `path` is for the places in errors: "job.yaml:3:5: ...". One job at least.
Result<std::vector<FileJob>> parse_job_file(std::string_view text, const std::string& path);

// The jobs in an order in which each comes after those that it names; the file's own order where
// that leaves a choice. `after[i]`: the names that job i has. invalid: they go round in a circle.
Result<std::vector<std::size_t>> order_of_jobs(const std::vector<FileJob>& jobs,
                                               const std::vector<std::vector<std::string>>& after);

}  // namespace mete::cli
