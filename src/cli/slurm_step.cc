// SPDX-License-Identifier: Apache-2.0
// srun: inside a job it starts the tasks of the job, each with its number in SLURM_PROCID. Outside
// it is `mete run` of a job whose command is such an srun. See slurm.h.
#include <unistd.h>

#include <algorithm>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/run.h"
#include "cli/slurm.h"
#include "cli/slurm_options.h"
#include "cli/slurm_words.h"
#include "cli/verbs.h"
#include "launch/supervise.h"
#include "runner/slurm_environment.h"

namespace mete::cli {

namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

// ---- inside -------------------------------------------------------------------------------------

std::vector<std::string> visible_cards() {
  std::vector<std::string> cards;
  const std::string visible = base::variable("CUDA_VISIBLE_DEVICES");
  for (const std::string_view card : base::split(visible, ','))
    if (!card.empty() && card != "-1") cards.emplace_back(card);  // -1: the job has none
  return cards;
}

// --ntasks and the like; else what the job was submitted with.
Result<std::uint64_t> tasks_of(const SlurmOptions& options) {
  for (const char* name : {"ntasks", "ntasks-per-node", "ntasks-per-gpu"})
    if (options.has(name)) return slurm_tasks(options, visible_cards().size());
  for (const char* name : {"SLURM_NTASKS", runner::kSlurmTasks})
    if (const Result<std::uint64_t> tasks = base::parse_uint(base::variable(name));
        tasks && *tasks > 0)
      return *tasks;
  return std::uint64_t{1};
}

// What every task of the step has. A job that sbatch did not submit has no variables of Slurm yet.
Variables variables_of_step(std::uint64_t tasks) {
  const std::string host = base::short_host_name();
  const std::string count = std::to_string(tasks);
  Variables variables{{"SLURM_NTASKS", count},
                      {"SLURM_NPROCS", count},
                      {"SLURM_TASKS_PER_NODE", count},
                      {"SLURM_STEP_NUM_TASKS", count},
                      {"SLURM_STEP_TASKS_PER_NODE", count},
                      {"SLURM_STEP_ID", "0"},
                      {"SLURM_STEPID", "0"},
                      {"SLURM_STEP_NUM_NODES", "1"},
                      {"SLURM_STEP_NODELIST", host},
                      {"SLURM_LAUNCH_NODE_IPADDR", "127.0.0.1"},
                      {"SLURM_SRUN_COMM_HOST", "127.0.0.1"},
                      {"SLURM_NODEID", "0"}};
  const Result<core::JobId> job = core::parse_job_id(base::variable("METE_JOB_ID"));
  if (!job || !base::variable("SLURM_JOB_ID").empty()) return variables;
  const std::string id = runner::slurm_job_id(*job);
  for (const auto& [name, value] : Variables{{"SLURM_JOB_ID", id},
                                             {"SLURM_JOBID", id},
                                             {"SLURM_JOB_UID", std::to_string(getuid())},
                                             {"SLURM_JOB_USER", base::variable("USER")},
                                             {"SLURM_SUBMIT_HOST", host},
                                             {"SLURM_NNODES", "1"},
                                             {"SLURM_JOB_NUM_NODES", "1"},
                                             {"SLURMD_NODENAME", host},
                                             {"SLURM_JOB_NODELIST", host},
                                             {"SLURM_NODELIST", host}})
    variables.emplace_back(name, value);
  if (const std::size_t cards = visible_cards().size(); cards != 0)
    variables.emplace_back("SLURM_GPUS_ON_NODE", std::to_string(cards));
  return variables;
}

void set(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  std::erase_if(environment, [&](const std::string& line) { return line.starts_with(name + "="); });
  environment.push_back(name + "=" + value);
}

// "out-%t.log" of task 3 is "out-3.log".
std::string file_of(const std::string& pattern, std::uint64_t task) {
  std::string text;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      text += pattern[i];
      continue;
    }
    const char what = pattern[++i];
    if (what == 't')
      text += std::to_string(task);
    else if (what == 'n')
      text += "0";
    else if (what == 'j' || what == 'J' || what == 'A')
      text += base::variable("METE_JOB_ID") + (what == 'J' ? ".0" : "");
    else if (what == 'N')
      text += base::short_host_name();
    else if (what == 's')
      text += "0";
    else if (what == 'u')
      text += base::variable("USER");
    else if (what == 'x')
      text += base::variable("SLURM_JOB_NAME");
    else
      text += what;
  }
  return text;
}

// With files for its output the command is run by a shell that opens them: `>>`, since tasks may
// share one, which was emptied before.
std::vector<std::string> task_command(const SlurmOptions& options, const SlurmWords& command,
                                      std::uint64_t task) {
  const std::string output = options.value_of("output"), error = options.value_of("error");
  if (output.empty() && error.empty()) return command;
  std::vector<std::string> words{
      "/bin/sh",
      "-c",
      std::string("o=$1 e=$2; shift 2; ") + (output.empty() ? "" : "exec >>\"$o\"; ") +
          (error.empty() ? (output.empty() ? "" : "exec 2>&1; ") : "exec 2>>\"$e\"; ") +
          "exec \"$@\"",
      "srun",
      file_of(output, task),
      file_of(error, task)};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

Result<void> empty_files(const SlurmOptions& options, std::uint64_t tasks) {
  if (options.value_of("open-mode").starts_with("a")) return {};
  for (const char* name : {"output", "error"})
    for (std::uint64_t task = 0; options.has(name) && task < tasks; ++task)
      if (Result<void> r = base::write_atomic(file_of(options.value_of(name), task), "", 0644); !r)
        return r;
  return {};
}

// The cards of each task, of --gpus-per-task; empty: all of them for each.
Result<std::vector<std::string>> cards_of_tasks(const SlurmOptions& options, std::uint64_t tasks) {
  std::vector<std::string> cards;
  const SlurmGiven* given = options.find("gpus-per-task");
  if (given == nullptr) return cards;
  const std::string count = given->value.substr(given->value.rfind(':') + 1);
  const Result<std::uint64_t> each = base::parse_uint(count);
  const std::vector<std::string> visible = visible_cards();
  if (!each || *each == 0 || *each * tasks > visible.size())
    return Error::invalid(given->written() + " " + base::quote(given->value) + " of " +
                          std::to_string(tasks) + " tasks is more than the job has")
        .with_evidence("it has " + std::to_string(visible.size()) + " cards")
        .with_hint("say it when the job is submitted: sbatch --ntasks=" + std::to_string(tasks) +
                   " --gpus-per-task=" + count);
  for (std::uint64_t task = 0; task < tasks; ++task) {
    const auto first = visible.begin() + static_cast<std::ptrdiff_t>(task * *each);
    cards.push_back(base::join({first, first + static_cast<std::ptrdiff_t>(*each)}, ","));
  }
  return cards;
}

int run_inside(const SlurmOptions& options, const SlurmWords& command, const Output& output) {
  if (const SlurmGiven* nodes = options.find("nodes");
      nodes != nullptr && nodes->value != "1" && !nodes->value.starts_with("1-"))
    return output.fail(slurm_refused(nodes->written() + " " + base::quote(nodes->value),
                                     "mete knows this machine alone"));
  const Result<std::uint64_t> tasks = tasks_of(options);
  if (!tasks) return output.fail(tasks.error());
  const Result<std::vector<std::string>> cards = cards_of_tasks(options, *tasks);
  if (!cards) return output.fail(cards.error());
  if (Result<void> r = empty_files(options, *tasks); !r) return output.fail(r.error());
  const Variables step = variables_of_step(*tasks);
  launch::Supervision asked;
  for (std::uint64_t task = 0; task < *tasks; ++task) {
    launch::Program program{task_command(options, command, task), base::own_environment(),
                            options.value_of("chdir")};
    for (const auto& [name, value] : step) set(program.environment, name, value);
    const std::string exported = options.value_of("export");
    for (const std::string_view each : base::split(exported, ','))
      if (const std::size_t equals = each.find('='); equals != std::string_view::npos)
        set(program.environment, std::string(each.substr(0, equals)),
            std::string(each.substr(equals + 1)));
    set(program.environment, "SLURM_PROCID", std::to_string(task));
    set(program.environment, "SLURM_LOCALID", std::to_string(task));
    if (!cards->empty()) set(program.environment, "CUDA_VISIBLE_DEVICES", (*cards)[task]);
    asked.programs.push_back(std::move(program));
  }
  const std::string time = options.value_of("time");
  if (const Result<std::uint64_t> limit = parse_slurm_time(time); !time.empty()) {
    if (!limit) return output.fail(limit.error());
    if (*limit != 0) asked.time_limit = std::chrono::seconds(*limit);
  }
  const Result<launch::ProgramEnd> ended = launch::supervise(asked);
  if (!ended) return output.fail(ended.error());
  if (!ended->started)
    return output.fail(Error::not_found("srun cannot run " + base::quote(command.front())),
                       ended->exit_code);
  return ended->exit_code;
}

// ---- outside ------------------------------------------------------------------------------------

// Options of the step itself, which the srun inside is given.
constexpr std::string_view kOfStep[] = {"output", "error", "open-mode", "gpus-per-task", "chdir"};

int run_outside(SlurmOptions options, const SlurmWords& command, const Output& output) {
  SlurmWords inner{base::real_path("/proc/self/exe"), "slurm", "srun"};
  for (const std::string_view name : kOfStep)
    if (options.has(name)) inner.push_back("--" + std::string(name) + "=" + options.value_of(name));
  for (const char* name : {"output", "error"}) options.remove(name);
  std::vector<std::string> warnings;
  Result<std::vector<Word>> words = options.words(warnings);
  if (!words) return output.fail(words.error());
  for (const std::string& warning : warnings) output.say(warning);
  SlurmWords arguments;
  bool cards = false;
  std::string name = command.front().substr(command.front().rfind('/') + 1);
  for (const Word& word : *words) {
    const std::string mark = std::string(runner::kSlurmTasks) + "=";
    if (word.option == "--env" && word.value.starts_with(mark))
      inner.push_back("--ntasks=" + word.value.substr(mark.size()));
    if (word.option == "--name") name = word.value;
    if (word.option == "--name" || word.option == "--chdir") continue;
    cards = cards || word.option == "--gpu";
    arguments.emplace_back(word.option);
    if (!word.value.empty()) arguments.push_back(word.value);
  }
  if (!cards) arguments.emplace_back("--cpu-only");
  inner.emplace_back("--");
  inner.insert(inner.end(), command.begin(), command.end());
  arguments.insert(arguments.end(), {"--name", name, "--quiet", "--"});
  arguments.insert(arguments.end(), inner.begin(), inner.end());
  const Result<Parsed> parsed = parse_options(run_options(), arguments, Rest::kCommand);
  if (!parsed) return output.fail(parsed.error());
  Result<RunPlan> plan = make_run_plan(*parsed);
  if (!plan) return output.fail(plan.error());
  return run_to_the_end(*std::move(plan), output);
}

}  // namespace

int run_srun(const SlurmWords& words, const Output& output) {
  SlurmOptions options;
  const Result<SlurmWords> command = options.take(kSrun, words);
  if (!command) return output.fail(command.error());
  if (command->empty())
    return output.fail(
        Error::invalid("srun names no program").with_hint("srun --gpus=1 python train.py"));
  const bool inside = !base::variable("METE_JOB_ID").empty();
  return inside ? run_inside(options, *command, output)
                : run_outside(std::move(options), *command, output);
}

}  // namespace mete::cli
