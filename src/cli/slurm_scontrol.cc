// SPDX-License-Identifier: Apache-2.0
// scontrol: show job, show hostnames, hold, release, requeue. See slurm.h.
#include <array>

#include "base/process.h"
#include "base/text.h"
#include "cli/named_jobs.h"
#include "cli/slurm.h"
#include "cli/slurm_format.h"
#include "cli/slurm_jobs.h"
#include "cli/slurm_options.h"
#include "runner/slurm_environment.h"
#include "seam/clock.h"

namespace mete::cli {

namespace {

constexpr std::array kScontrolOptions{
    SlurmOption{"oneliner", 'o', SlurmOption::Takes::kNothing, SlurmOption::Here::kMeant},
    SlurmOption{"details", 'd', SlurmOption::Takes::kNothing},
    SlurmOption{"all", 'a', SlurmOption::Takes::kNothing},
    SlurmOption{"quiet", 'Q', SlurmOption::Takes::kNothing},
};
const SlurmProgram kScontrol{"scontrol", kScontrolOptions};

std::string exit_of(const core::Job& job) {
  if (!job.exit) return "0:0";
  return std::to_string(job.exit->code.value_or(0)) + ":" +
         std::to_string(job.exit->signal.value_or(0));
}

std::string run_time(std::int64_t seconds) {
  std::string text = slurm_span(seconds);
  if (text.find('-') != std::string::npos) return text;
  while (text.size() < 8) text.insert(0, text.size() == 5 ? "00:" : "0");
  return text;
}

// The lines of `scontrol show job`, as far as they mean something here.
std::vector<std::string> show_lines(const wire::ShowDocument& shown, WallTime now) {
  const wire::JobView& view = shown.view;
  const core::Job& job = view.job;
  const core::JobSpec& spec = *job.spec;
  const std::string cpus = std::to_string(spec.request.cpus.value_or(1));
  const std::string host = base::short_host_name();
  const bool pending = job.state == core::JobState::kPending;
  const std::string err = shown.err.empty() ? shown.log : shown.err;
  std::vector<std::string> lines{"JobId=" + runner::slurm_job_id(job.id)};
  if (job.id.element)
    lines[0] += " ArrayJobId=" + std::to_string(job.id.number) +
                " ArrayTaskId=" + std::to_string(*job.id.element);
  lines[0] += " JobName=" + spec.name;
  lines.push_back("UserId=" + spec.user + "(" + std::to_string(spec.uid) + ")");
  lines.push_back("Priority=" + std::to_string(job.priority) + " Nice=0 Account=(null) QOS=normal");
  lines.push_back("JobState=" + std::string(slurm_state(job).name) +
                  " Reason=" + slurm_reason_of(view) + " Dependency=" + slurm_dependency(job));
  lines.push_back(std::string("Requeue=") + (spec.requeue ? "1" : "0") +
                  " Restarts=" + std::to_string(job.attempt - 1) +
                  " BatchFlag=" + (spec.detached ? "1" : "0") + " ExitCode=" + exit_of(job));
  lines.push_back("RunTime=" + run_time(slurm_seconds_used(job, now)) +
                  " TimeLimit=" + slurm_limit(spec.time_s) + " TimeMin=N/A");
  lines.push_back("SubmitTime=" + slurm_time(job.submitted) +
                  " EligibleTime=" + slurm_time(spec.begin ? spec.begin : job.submitted));
  lines.push_back("StartTime=" + slurm_time(slurm_start(view)) + " EndTime=" +
                  slurm_time(slurm_end(job)) + " Deadline=" + slurm_time(spec.deadline));
  lines.push_back("Partition=" + std::string(kSlurmPartition) + " AllocNode:Sid=" + host);
  lines.push_back("NodeList=" + (pending ? "" : host) + (pending ? "" : " BatchHost=" + host));
  lines.push_back("NumNodes=1 NumCPUs=" + cpus + " NumTasks=" + std::to_string(spec.request.procs) +
                  " CPUs/Task=" + cpus);
  lines.push_back(
      "MinMemoryNode=" + (spec.request.ram ? base::to_exact_string(*spec.request.ram) : "0") +
      " TresPerNode=" + slurm_gres(job));
  lines.push_back("Command=" + base::join(spec.command, " "));
  lines.push_back("WorkDir=" + spec.folder);
  if (!shown.log.empty()) {
    lines.push_back("StdErr=" + err);
    lines.emplace_back("StdIn=/dev/null");
    lines.push_back("StdOut=" + shown.log);
  }
  for (std::string& line : lines) line = base::printable(line);
  return lines;
}

int show_jobs(const SlurmWords& words, bool one_line, const Output& output) {
  const Result<std::vector<core::JobId>> named = slurm_ids(words);
  if (!named) return output.fail(named.error());
  std::vector<core::JobId> ids = *named;
  if (words.empty()) {
    const Result<SlurmJobs> jobs = slurm_jobs({});
    if (!jobs) return output.fail(jobs.error());
    for (const wire::JobView& view : *jobs) ids.push_back(view.job.id);
    if (ids.empty()) output.data("No jobs in the system");
    if (ids.empty()) return kExitOk;
  }
  Result<runner::DaemonClient> client = runner::DaemonClient::open_for_jobs();
  if (!client) return output.fail(client.error());
  Failures failures(output);
  for (const core::JobId id : ids) {
    const Result<wire::ShowDocument> shown = slurm_show(*client, id);
    if (!shown) {
      failures.add(shown.error());
      continue;
    }
    output.data(
        base::join(show_lines(*shown, seam::system_clock().wall()), one_line ? " " : "\n   ") +
        (one_line ? "" : "\n"));
  }
  return failures.exit_code();
}

int change_named(const std::string& what, const SlurmWords& words, const Output& output) {
  const Result<std::vector<core::JobId>> ids = slurm_ids(words);
  if (!ids) return output.fail(ids.error());
  if (ids->empty())
    return output.fail(
        Error::invalid("scontrol " + what + " names no job").with_hint("scontrol " + what + " 12"));
  Result<runner::DaemonClient> client = runner::DaemonClient::open_for_jobs();
  if (!client) return output.fail(client.error());
  Failures failures(output);
  for (const core::JobId id : *ids)
    if (const Result<std::string> r = client->call("POST", job_target(id, "/" + what)); !r)
      failures.add(r.error());
  return failures.exit_code();
}

}  // namespace

int run_scontrol(const SlurmWords& words, const Output& output) {
  SlurmOptions options;
  Result<SlurmWords> plain = slurm_plain_words(kScontrol, words, options);
  if (!plain) return output.fail(plain.error());
  const auto word = [&](std::size_t at) {
    return at < plain->size() ? base::to_lower((*plain)[at]) : "";
  };
  const SlurmWords rest(
      plain->begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(2, plain->size())),
      plain->end());
  if (word(0) == "show" && (word(1) == "job" || word(1) == "jobs"))
    return show_jobs(rest, options.has("oneliner"), output);
  if (word(0) == "show" && (word(1) == "hostnames" || word(1) == "hostname")) {
    const Result<std::string> hosts =
        slurm_hosts(rest.empty() ? base::variable("SLURM_JOB_NODELIST") : rest.front());
    if (!hosts) return output.fail(hosts.error());
    output.data(*hosts);
    return kExitOk;
  }
  if (word(0) == "hold" || word(0) == "release" || word(0) == "requeue")
    return change_named(word(0), {plain->begin() + 1, plain->end()}, output);
  return output.fail(
      Error::unsupported("scontrol " + base::join(*plain, " ") + " is not possible here")
          .with_hint("scontrol show job [ID], show hostnames, hold, release and requeue are; see "
                     "mete-slurm(7)"));
}

}  // namespace mete::cli
