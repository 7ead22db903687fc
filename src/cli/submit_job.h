// SPDX-License-Identifier: Apache-2.0
// One job of `mete submit`, from words to the request. The words come from the command line, from
// lines of a script and from job files; all are options of one table, and their source matters only
// for errors. No daemon is asked; what the job inherits from its submitter is passed in.
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
// Options of the command itself, which are allowed only on a command line.
bool is_of_command_line(std::string_view option);

// An option as the user wrote it.
struct Word {
  std::string_view option;  // "--gpu": the name in the table
  std::string value;        // "" for a flag, or kNo where a file turns it off
  std::string where;        // "train.sh:3", "job.yaml:4:8"; "": the command line
  bool operator==(const Word&) const = default;
};

inline constexpr std::string_view kNo = "false";

// Options of `over` replace those of `under`. Variables and labels are joined by name; a share in
// `over` replaces all options about cards in `under`.
std::vector<Word> merge(std::vector<Word> under, std::vector<Word> over);

// What a job inherits from the place where it was submitted.
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
  std::string name;  // of a job in this file; "": `job` names the job
  core::When when = core::When::kOk;
  bool operator==(const AfterWord&) const = default;
};
// A list separated by commas. `names`: the jobs of the file; nullptr: there is no file.
Result<std::vector<AfterWord>> parse_after(std::string_view text,
                                           const std::vector<std::string>* names);
std::string to_string(const AfterWord& after);

struct PlannedJob {
  wire::SubmitRequest request;  // complete but for spec.after, which needs the daemon
  std::vector<AfterWord> after;
  std::vector<std::pair<std::string, std::string>>
      variables;  // of --env; they are in `request` already
};

// The parts of one job.
struct JobWords {
  std::vector<Word> options;
  std::vector<std::string> command;  // for a script, its path and arguments
  std::optional<Script> script;
  std::string shell;                                // instead of a command: a line for /bin/sh
  const std::vector<std::string>* names = nullptr;  // of the jobs of its file
  bool share_follows = false;  // --gpu auto of a sweep: the daemon decides on each share
};

// Checks the value of an option by itself.
Result<void> check_word(const Word& word, const std::vector<std::string>* names,
                        const Surroundings& around);
Result<PlannedJob> make_job(const JobWords& words, const Surroundings& around);

}  // namespace mete::cli
