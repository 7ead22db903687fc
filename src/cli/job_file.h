// SPDX-License-Identifier: Apache-2.0
// Job files: YAML in, the words of one or several jobs out, each with its line and column. Keys are
// the long options without their dashes; an unknown key is reported with the nearest one. Only the
// text is read. docs/formats/job-file.md has every key.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "cli/submit_job.h"

namespace mete::cli {

inline constexpr std::size_t kMaxJobFile = 1 << 20;
inline constexpr std::size_t kMaxFileJobs = 1000;

// The program of a job: one of the three.
struct FileProgram {
  std::vector<std::string> command;
  std::string shell;                // `command:` as one text: a line for /bin/sh
  std::vector<std::string> script;  // `script:` as a path with arguments
  std::string text;                 // `script:` as the text of a script
  std::string where;
  bool is_said() const { return !where.empty(); }
};

// The value of a key that jobs do not have.
struct FileValue {
  enum class Kind { kText, kList, kMap };
  Kind kind = Kind::kText;
  std::string where;              // "chat.yaml:4:10"
  std::string text;               // of kText
  std::vector<std::string> keys;  // of kMap, one for each part, with - for _
  std::vector<FileValue> parts;   // of kList and kMap
};

struct FileJob {
  std::vector<Word> words;
  FileProgram program;
  std::vector<std::pair<std::string, FileValue>> more;  // keys of a service file
  std::string name;                                     // "": none is said
  std::string where;                                    // "job.yaml:3"
};

// `path` is for the places in errors: "job.yaml:3:5: ...". At least one job.
Result<std::vector<FileJob>> parse_job_file(std::string_view text, const std::string& path);

// As parse_job_file(), of a service file: `keys` are those of its services beside the keys of a
// job, and stand for themselves where a job has one of that name. `file_keys`: those of the whole
// file, put into `of_file`. The services stand in a list under services:.
Result<std::vector<FileJob>> parse_service_entries(
    std::string_view text, const std::string& path, std::span<const std::string_view> keys,
    std::span<const std::string_view> file_keys,
    std::vector<std::pair<std::string, FileValue>>& of_file);

// The jobs in an order in which each follows the jobs that it names; otherwise in the file's order.
// `after[i]`: the names that job i waits for. invalid: they form a cycle.
Result<std::vector<std::size_t>> order_of_jobs(const std::vector<FileJob>& jobs,
                                               const std::vector<std::vector<std::string>>& after);

}  // namespace mete::cli
