// SPDX-License-Identifier: Apache-2.0
// squeue over the daemon's list of jobs. See slurm.h.
#include <array>
#include <map>

#include "base/process.h"
#include "base/text.h"
#include "cli/slurm.h"
#include "cli/slurm_format.h"
#include "cli/slurm_jobs.h"
#include "cli/slurm_options.h"
#include "cli/slurm_words.h"
#include "runner/slurm_environment.h"
#include "seam/clock.h"

namespace mete::cli {

namespace {

// Options that are understood and change nothing here are kNothing: named in no warning, since
// people have them in aliases.
constexpr std::array kSqueueOptions{
    SlurmOption{"noheader", 'h', SlurmOption::Takes::kNothing, SlurmOption::Here::kMeant},
    SlurmOption{"user", 'u', SlurmOption::Takes::kValue, SlurmOption::Here::kMeant},
    SlurmOption{"me", 0, SlurmOption::Takes::kNothing, SlurmOption::Here::kMeant},
    SlurmOption{"jobs", 'j', SlurmOption::Takes::kValue, SlurmOption::Here::kMeant},
    SlurmOption{"states", 't', SlurmOption::Takes::kValue, SlurmOption::Here::kMeant},
    SlurmOption{"name", 'n', SlurmOption::Takes::kValue, SlurmOption::Here::kMeant},
    SlurmOption{"format", 'o', SlurmOption::Takes::kValue, SlurmOption::Here::kMeant},
    SlurmOption{"long", 'l', SlurmOption::Takes::kNothing, SlurmOption::Here::kMeant},
    SlurmOption{"start", 0, SlurmOption::Takes::kNothing, SlurmOption::Here::kMeant},
    SlurmOption{"Format", 'O', SlurmOption::Takes::kValue, SlurmOption::Here::kRefused,
                "say -o with letters"},
    SlurmOption{"iterate", 'i', SlurmOption::Takes::kValue, SlurmOption::Here::kRefused,
                "mete top, or mete ps --watch"},
    SlurmOption{"steps", 's', SlurmOption::Takes::kMaybe, SlurmOption::Here::kRefused,
                "mete show lists the processes"},
    SlurmOption{"array", 'r', SlurmOption::Takes::kNothing},
    SlurmOption{"all", 'a', SlurmOption::Takes::kNothing},
    SlurmOption{"sort", 'S'},
    SlurmOption{"partition", 'p'},
    SlurmOption{"account", 'A'},
    SlurmOption{"qos", 'q'},
    SlurmOption{"nodelist", 'w'},
    SlurmOption{"verbose", 'v', SlurmOption::Takes::kNothing},
};
const SlurmProgram kSqueue{"squeue", kSqueueOptions};

std::optional<std::string> squeue_field(char letter, const wire::JobView& view, WallTime now) {
  const core::Job& job = view.job;
  const core::JobSpec& spec = *job.spec;
  const bool pending = job.state == core::JobState::kPending;
  const std::string host = pending ? "" : base::short_host_name();
  switch (letter) {
    case 'i':
      return to_string(job.id);
    case 'A':
      return runner::slurm_job_id(job.id);
    case 'F':
      return std::to_string(job.id.number);
    case 'K':
      return job.id.element ? std::to_string(*job.id.element) : "N/A";
    case 'j':
      return base::printable(spec.name);
    case 'u':
      return base::printable(spec.user);
    case 'U':
      return std::to_string(spec.uid);
    case 'P':
      return std::string(kSlurmPartition);
    case 't':
      return std::string(slurm_state(job).shortly);
    case 'T':
      return std::string(slurm_state(job).name);
    case 'M':
      return slurm_span(slurm_seconds_used(job, now));
    case 'l':
      return slurm_limit(spec.time_s);
    case 'L':
      return spec.time_s ? slurm_span(static_cast<std::int64_t>(*spec.time_s) -
                                      slurm_seconds_used(job, now))
                         : "UNLIMITED";
    case 'S':
      return slurm_time(slurm_start(view));
    case 'e':
      return slurm_time(slurm_end(job));
    case 'V':
      return slurm_time(job.submitted);
    case 'D':
      return "1";
    case 'C':
      return std::to_string(spec.request.cpus.value_or(1));
    case 'm':
      return spec.request.ram ? base::to_exact_string(*spec.request.ram) : "0";
    case 'b':
      return slurm_gres(job);
    case 'N':
    case 'B':
      return host;
    case 'R':
      return pending ? "(" + slurm_reason_of(view) + ")" : host;
    case 'r':
      return slurm_reason_of(view);
    case 'Q':
    case 'p':
      return std::to_string(job.priority);
    case 'E':
      return slurm_dependency(job);
    case 'Z':
      return base::printable(spec.folder);
    case 'o':
      return base::printable(base::join(spec.command, " "));
    case 'a':
    case 'k':
      return "(null)";
    case 'q':
      return "normal";
    default:
      return std::nullopt;
  }
}

std::optional<std::string> squeue_title(char letter) {
  static const std::map<char, std::string> kTitles{{'i', "JOBID"},
                                                   {'A', "JOBID"},
                                                   {'F', "ARRAY_JOB_ID"},
                                                   {'K', "ARRAY_TASK_ID"},
                                                   {'j', "NAME"},
                                                   {'u', "USER"},
                                                   {'U', "UID"},
                                                   {'P', "PARTITION"},
                                                   {'t', "ST"},
                                                   {'T', "STATE"},
                                                   {'M', "TIME"},
                                                   {'l', "TIME_LIMIT"},
                                                   {'L', "TIME_LEFT"},
                                                   {'S', "START_TIME"},
                                                   {'e', "END_TIME"},
                                                   {'V', "SUBMIT_TIME"},
                                                   {'D', "NODES"},
                                                   {'C', "CPUS"},
                                                   {'m', "MIN_MEMORY"},
                                                   {'b', "TRES_PER_NODE"},
                                                   {'N', "NODELIST"},
                                                   {'B', "EXEC_HOST"},
                                                   {'R', "NODELIST(REASON)"},
                                                   {'r', "REASON"},
                                                   {'Q', "PRIORITY"},
                                                   {'p', "PRIORITY"},
                                                   {'E', "DEPENDENCY"},
                                                   {'Z', "WORK_DIR"},
                                                   {'o', "COMMAND"},
                                                   {'a', "ACCOUNT"},
                                                   {'k', "COMMENT"},
                                                   {'q', "QOS"}};
  const auto found = kTitles.find(letter);
  return found == kTitles.end() ? std::nullopt : std::optional(found->second);
}

std::string squeue_format(const SlurmOptions& options) {
  if (options.has("format")) return options.value_of("format");
  if (const std::string own = base::variable("SQUEUE_FORMAT"); !own.empty()) return own;
  if (options.has("start")) return "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %R";
  if (options.has("long")) return "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
  return "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
}

}  // namespace

int run_squeue(const SlurmWords& words, const Output& output) {
  SlurmOptions options;
  Result<SlurmWords> plain = slurm_plain_words(kSqueue, words, options);
  if (!plain) return output.fail(plain.error());
  if (!plain->empty())
    return output.fail(Error::invalid(base::quote(plain->front()) + " is not expected here")
                           .with_hint("squeue -j 12 -u alice -t PENDING -o '%i %T'"));
  const Result<SlurmChosen> chosen = slurm_chosen(options, slurm_list(options, "jobs"));
  if (!chosen) return output.fail(chosen.error());
  const std::string format = squeue_format(options);
  const bool more = format.find_first_of("lLeCmZE") != std::string::npos;
  const Result<SlurmJobs> jobs =
      slurm_jobs(*chosen, more ? SlurmDetails::kShown : SlurmDetails::kListed);
  if (!jobs) return output.fail(jobs.error());
  const WallTime now = seam::system_clock().wall();
  const Result<std::string> titles = slurm_line(format, squeue_title);
  if (!titles) return output.fail(titles.error());
  if (!options.has("noheader")) output.data(*titles);
  for (const wire::JobView& view : *jobs)
    output.data(*slurm_line(format, [&](char letter) { return squeue_field(letter, view, now); }));
  return kExitOk;
}

}  // namespace mete::cli
