// SPDX-License-Identifier: Apache-2.0
// See submit_plan.h.
#include "cli/submit_plan.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/fd.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/output.h"
#include "runner/slurm_environment.h"

namespace mete::cli {

namespace {

Error without_shebang(const std::string& path) {
  return Error::invalid(path + " has no shebang, so nothing says what runs it")
      .with_hint("begin it with #!/bin/bash; or put the program before it, as in -- python " +
                 path);
}

std::string absolute(const std::string& path, const Surroundings& around) {
  return path.starts_with("/") ? path : base::join_path(around.folder, path);
}

bool says_cards(const std::vector<Word>& words) {
  return std::any_of(words.begin(), words.end(), [](const Word& word) {
    return word.option == "--gpu" || word.option == "--cpu-only" || word.option == "--devices";
  });
}

bool starts_tasks(const std::vector<Word>& words) {
  const std::string name = std::string(runner::kSlurmTasks) + "=";
  return std::any_of(words.begin(), words.end(), [&](const Word& word) {
    return word.option == "--env" && word.value.starts_with(name) && word.value != name + "1";
  });
}

// What a job of sbatch has though no option says so: its log where people look for it, and a mark
// by which its keeper knows that it is one.
void add_batch(std::vector<Word>& words) {
  const auto has = [&](std::string_view option, std::string_view value = "") {
    return std::any_of(words.begin(), words.end(), [&](const Word& word) {
      return word.option == option && word.value.starts_with(value);
    });
  };
  const std::string mark = std::string(runner::kSlurmTasks) + "=";
  if (!has("--env", mark)) words.push_back({"--env", mark + "1", ""});
  if (!has("--log"))
    words.push_back({"--log", has("--array") ? "slurm-%A_%a.out" : "slurm-%j.out", ""});
}

}  // namespace

bool is_program_of_path(const std::string& word) {
  const std::string path = base::variable("PATH");
  for (const std::string_view folder : base::split(path, ':'))
    if (!folder.empty() && access(base::join_path(folder, word).c_str(), X_OK) == 0) return true;
  return false;
}

Result<Script> read_script(const std::string& path) {
  Result<std::string> text = base::read_all(path, kMaxScript);
  if (!text && text.error().code == ErrorCode::kCorrupt)
    return Error::invalid(path + " is too large to send along")
        .with_evidence("a script has at most " + std::to_string(kMaxScript >> 10) + " KiB")
        .with_hint("write -- before it: then it is run where it lies");
  if (!text) return std::move(text).error().with_hint("a script is read when it is submitted");
  if (!text->starts_with("#!")) return without_shebang(path);
  return Script{path, *std::move(text)};
}

Result<void> check_is_there(const Parsed& parsed) {
  if (parsed.dashes || parsed.rest.empty()) return {};
  const std::string& word = parsed.rest.front();
  const bool plain = word.find('/') == std::string::npos;
  const std::vector<std::string> variables = parsed.all("--env");
  const bool elsewhere = parsed.has("--chdir") ||
                         std::any_of(variables.begin(), variables.end(),
                                     [](const auto& each) { return each.starts_with("PATH="); });
  if (elsewhere || access(word.c_str(), F_OK) == 0 || (plain && is_program_of_path(word)))
    return {};
  return Error::not_found("there is no file " + base::quote(word) +
                          (plain ? ", and no program of that name in PATH" : ""))
      .with_hint("check the name; after -- it is not looked for until the job starts");
}

Result<std::optional<Script>> find_script(const std::string& word) {
  const bool plain = word.find('/') == std::string::npos;
  struct stat status {};
  if (stat(word.c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
      access(word.c_str(), R_OK) != 0 || (plain && is_program_of_path(word)))
    return std::optional<Script>();
  Fd file(open(word.c_str(), O_RDONLY | O_CLOEXEC));
  std::string head(4096, '\0');
  const ssize_t size = file ? read(file.get(), head.data(), head.size()) : -1;
  head.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  if (!head.starts_with("#!") && head.find('\0') != std::string::npos)
    return std::optional<Script>();
  if (!head.starts_with("#!")) return without_shebang(word);
  Result<Script> script = read_script(word);
  if (!script) return std::move(script).error();
  return std::optional(*std::move(script));
}

int SubmitPlanner::exit_code(const Error& error) const {
  return in_file_ ? kExitBadFile : exit_code_of(error.code);
}

Result<SubmitPlan> SubmitPlanner::plan() {
  if (Result<void> r = take_command_line(); !r) return std::move(r).error();
  if (parsed_.has("--file")) {
    if (Result<void> r = plan_file(); !r) return std::move(r).error();
  } else {
    Result<SubmitPlan::Job> job = plan_command();
    if (!job) return std::move(job).error();
    plan_.jobs.push_back(*std::move(job));
  }
  return std::move(plan_);
}

Result<SubmitPlan> SubmitPlanner::plan_batch(const Script& script,
                                             const std::vector<std::string>& arguments,
                                             SlurmOptions options) {
  in_file_ = true;
  slurm_ = std::move(options);
  batch_ = true;
  JobWords words;
  words.command = {script.path};
  words.command.insert(words.command.end(), arguments.begin(), arguments.end());
  if (Result<void> r = add_script(script, {}, words); !r) return std::move(r).error();
  Result<PlannedJob> job = finish(words, script.path);
  if (!job) return std::move(job).error();
  plan_.jobs.push_back({*std::move(job), "", absolute(script.path, around_)});
  return std::move(plan_);
}

Result<void> SubmitPlanner::take_command_line() {
  for (const auto& [option, value] : parsed_.options)
    if (!is_of_command_line(option)) command_line_.push_back({option, value, ""});
  if (parsed_.has("--file")) return {};  // names of its jobs are not known yet
  for (const Word& word : command_line_)
    if (Result<void> r = check_word(word, nullptr, around_); !r) return r;
  return {};
}

Result<SubmitPlan::Job> SubmitPlanner::plan_command() {
  JobWords words;
  words.command = parsed_.rest;
  std::optional<Script> script;
  if (!parsed_.dashes && !parsed_.rest.empty()) {
    in_file_ = true;
    Result<std::optional<Script>> found = find_script(parsed_.rest.front());
    if (!found) return std::move(found).error();
    script = *std::move(found);
    in_file_ = script.has_value();
  }
  if (script) {
    if (Result<void> r = add_script(*script, {}, words); !r) return std::move(r).error();
  } else {
    words.options = command_line_;
  }
  Result<PlannedJob> job = finish(words, script ? script->path : "");
  if (!job) return std::move(job).error();
  return SubmitPlan::Job{*std::move(job), "", script ? absolute(script->path, around_) : ""};
}

// Its lines, below what stands in the job file (`over`), below the command line.
Result<void> SubmitPlanner::add_script(const Script& script, std::vector<Word> over,
                                       JobWords& words) {
  Result<ScriptOptions> options = read_script_options(script.text, script.path, slurm_);
  if (!options) return std::move(options).error();
  if (batch_) add_batch(options->words);
  plan_.warnings.insert(plan_.warnings.end(), options->warnings.begin(), options->warnings.end());
  words.options = merge(merge(std::move(options->words), std::move(over)), command_line_);
  words.script = script;
  if ((options->slurm || batch_) && !says_cards(words.options)) {
    words.options.push_back({"--cpu-only", "", script.path});
    plan_.warnings.push_back(script.path + ": its " + (batch_ ? "options" : "#SBATCH lines") +
                             " ask for no GPU, so the job will see none");
  }
  if (starts_tasks(words.options) && !is_program_of_path("srun"))
    plan_.warnings.push_back(script.path +
                             ": it runs once, for all its tasks; with share/mete/slurm in PATH "
                             "there is an srun that starts them");
  return {};
}

Result<PlannedJob> SubmitPlanner::finish(const JobWords& words, const std::string& where) {
  bool of_files = false;
  for (const Word& word : words.options) {
    in_file_ = !word.where.empty();
    of_files = of_files || in_file_;
    if (Result<void> r = check_word(word, words.names, around_); !r)
      return in_file_ ? std::move(r).error().within(word.where) : std::move(r).error();
  }
  in_file_ = of_files || parsed_.has("--file");
  Result<PlannedJob> job = make_job(words, around_);
  // What has no line of its own is about the job as a whole.
  if (!job && in_file_) return std::move(job).error().within(where);
  return job;
}

Result<std::vector<FileJob>> SubmitPlanner::read_file() {
  const std::string path = *parsed_.find("--file");
  Result<std::string> text = base::read_all(path == "-" ? "/dev/stdin" : path, kMaxJobFile);
  if (!text && text.error().code == ErrorCode::kCorrupt)
    return Error::invalid(path + " is too large for a job file")
        .with_hint("it has at most " + std::to_string(kMaxJobFile >> 10) + " KiB");
  if (!text) return std::move(text).error().with_hint("mete submit -f FILE reads a YAML file");
  return parse_job_file(*text, path == "-" ? "(stdin)" : path);
}

Result<SubmitPlan::Job> SubmitPlanner::plan_file_job(const FileJob& file_job) {
  JobWords words;
  words.names = &names_;
  const FileProgram& program = file_job.program;
  std::optional<Script> script;
  if (!program.text.empty()) {
    if (!program.text.starts_with("#!"))
      return without_shebang("this script").within(program.where);
    script = Script{program.where, program.text};
    words.command = {"script"};
  } else if (!program.script.empty()) {
    Result<Script> read = read_script(program.script.front());
    if (!read) return std::move(read).error().within(program.where);
    script = *std::move(read);
    words.command = program.script;
  } else {
    words.command = program.command;
    words.shell = program.shell;
  }
  if (script) {
    if (Result<void> r = add_script(*script, file_job.words, words); !r)
      return std::move(r).error();
  } else {
    words.options = merge(file_job.words, command_line_);
  }
  Result<PlannedJob> job = finish(words, file_job.where);
  if (!job) return std::move(job).error();
  return SubmitPlan::Job{*std::move(job), file_job.name,
                         program.script.empty() ? "" : absolute(program.script.front(), around_)};
}

Result<void> SubmitPlanner::plan_file() {
  if (!parsed_.rest.empty())
    return Error::invalid("--file and a command contradict each other")
        .with_hint("the job file says what runs: command: or script:");
  in_file_ = true;
  const Result<std::vector<FileJob>> file = read_file();
  if (!file) return file.error();
  for (const char* option : {"--name", "--after", "--no-wait"}) {
    in_file_ = !(file->size() > 1 && parsed_.has(option));
    if (!in_file_)
      return Error::invalid(std::string(option) + " would be the same for " +
                            std::to_string(file->size()) + " jobs")
          .with_hint("say it in the file");
  }
  for (const FileJob& job : *file)
    if (!job.name.empty()) names_.push_back(job.name);
  std::vector<SubmitPlan::Job> jobs;
  std::vector<std::vector<std::string>> after;
  for (const FileJob& file_job : *file) {
    Result<SubmitPlan::Job> job = plan_file_job(file_job);
    if (!job) return std::move(job).error();
    if (file->size() > 1 && !job->job.request.wait)
      return Error::invalid(file_job.where + ": one of several jobs cannot be sent with no-wait")
          .with_hint("leave no-wait out");
    after.emplace_back();
    for (const AfterWord& word : job->job.after) {
      if (word.name.empty()) continue;
      if (std::count(names_.begin(), names_.end(), word.name) > 1)
        return Error::invalid(file_job.where + ": two jobs have the name " +
                              base::quote(word.name) + ", after which this one comes")
            .with_hint("give them different names");
      after.back().push_back(word.name);
    }
    jobs.push_back(*std::move(job));
  }
  in_file_ = true;
  const Result<std::vector<std::size_t>> order = order_of_jobs(*file, after);
  if (!order) return order.error();
  for (const std::size_t at : *order) plan_.jobs.push_back(std::move(jobs[at]));
  return {};
}

}  // namespace mete::cli
