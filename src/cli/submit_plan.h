// SPDX-License-Identifier: Apache-2.0
// What `mete submit` is asked for, as a value: words in, jobs out. Reads the script or the job file
// that the words name; changes nothing and asks no daemon.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/job_file.h"
#include "cli/options.h"
#include "cli/script_options.h"
#include "cli/submit_job.h"

namespace mete::cli {

struct SubmitPlan {
  struct Job {
    PlannedJob job;
    std::string name;  // in its file, for the AfterWords of others; "": none
    std::string
        script;  // absolute path of the file; "": no script, or its text stands in a job file
  };
  std::vector<Job> jobs;              // each after those that it names
  std::vector<std::string> warnings;  // a line each
};

class SubmitPlanner {
 public:
  SubmitPlanner(const Parsed& parsed, Surroundings around)
      : parsed_(parsed), around_(std::move(around)) {}

  Result<SubmitPlan> plan();
  // sbatch: a script with its arguments, and options of sbatch's command line.
  Result<SubmitPlan> plan_batch(const Script& script, const std::vector<std::string>& arguments,
                                SlurmOptions options);
  // After an error: of a file (65) or of the command line.
  int exit_code(const Error& error) const;

 private:
  Result<void> take_command_line();
  Result<SubmitPlan::Job> plan_command();
  Result<void> plan_file();
  Result<std::vector<FileJob>> read_file();
  Result<SubmitPlan::Job> plan_file_job(const FileJob& file_job);
  Result<void> add_script(const Script& script, std::vector<Word> over, JobWords& words);
  Result<PlannedJob> finish(const JobWords& words, const std::string& where);

  const Parsed& parsed_;
  Surroundings around_;
  std::vector<Word> command_line_;
  SlurmOptions slurm_;              // of the command line
  bool batch_ = false;              // it is sbatch's
  std::vector<std::string> names_;  // of the jobs of the file
  SubmitPlan plan_;
  bool in_file_ = false;  // what is being looked at
};

// The script that the first word of a command names: a file that begins with "#!". A word without a
// "/" that is a program of PATH is that program. nullopt: not a text, or no file at all. invalid: a
// text without a shebang, or one that is too long.
Result<std::optional<Script>> find_script(const std::string& word);
// The text of a script, which begins with "#!".
Result<Script> read_script(const std::string& path);
bool is_program_of_path(const std::string& word);
// not_found: the command is neither a file nor a program, which is better said now than by a job
// that fails later. A command after "--", or one for another folder or PATH, is not looked for.
Result<void> check_is_there(const Parsed& parsed);

}  // namespace mete::cli
