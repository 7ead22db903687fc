// SPDX-License-Identifier: Apache-2.0
// One job of `mete submit`, from words to what is sent. The words come from the command line, from
// lines of a script and from job files; all of them are options of one table, and where they came
// from matters for errors alone. Nothing is asked of a daemon; what the job takes along from its
// submitter is handed in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/job_ref.h"
#include "cli/options.h"
#include "wire/submit.h"

namespace mete::cli {

// Every option of `mete submit`.
std::span<const OptionSpec> submit_options();
// What only a command line may say: of the command, not of a job.
bool is_of_command_line(std::string_view option);

// An option as somebody has written it.
struct Word {
  std::string_view option;  // "--gpu": the name in the table
  std::string value;        // of a flag "", or kNo where a file takes it back
  std::string where;        // "train.sh:3", "job.yaml:4:8"; "": the command line
  bool operator==(const Word&) const = default;
};

inline constexpr std::string_view kNo = "false";

// Those of `over` win over those of `under`. Variables and labels are joined by name; a share said
// above replaces every word about cards below.
std::vector<Word> merge(std::vector<Word> under, std::vector<Word> over);

// What a job has from where it was submitted.
struct Surroundings {
  std::string folder;
  std::vector<std::string> environment;
  std::uint32_t umask = 022;
  WallTime now;

  static Surroundings ours();
};

struct Script {
  std::string path;  // as written
  std::string text;
};

// "12:ok", "@:any", and in a job file "prepare:ok".
struct AfterWord {
  JobRef job;
  std::string name;  // of a job of the same file; "": `job` it is
  core::When when = core::When::kOk;
  bool operator==(const AfterWord&) const = default;
};
// A list between commas. `names`: those that there are; nullptr: there is no file.
Result<std::vector<AfterWord>> parse_after(std::string_view text,
                                           const std::vector<std::string>* names);
std::string to_string(const AfterWord& after);

struct PlannedJob {
  wire::SubmitRequest request;  // all but spec.after, which only a daemon can complete
  std::vector<AfterWord> after;
  std::vector<std::pair<std::string, std::string>> variables;  // of --env; they are in it already
};

// What one job is made of.
struct JobWords {
  std::vector<Word> options;
  std::vector<std::string> command;  // of a script its path and what it is given
  std::optional<Script> script;
  std::string shell;                                // instead of a command: a line for /bin/sh
  const std::vector<std::string>* names = nullptr;  // of the jobs of its file
};

// Whether the value of an option is one, by itself.
Result<void> check_word(const Word& word, const std::vector<std::string>* names,
                        const Surroundings& around);
Result<PlannedJob> make_job(const JobWords& words, const Surroundings& around);

}  // namespace mete::cli
