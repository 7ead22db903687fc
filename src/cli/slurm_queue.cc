// SPDX-License-Identifier: Apache-2.0
// squeue, scancel, sinfo and scontrol over the daemon's own documents. See slurm.h.
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/job_ref.h"
#include "cli/named_jobs.h"
#include "cli/slurm.h"
#include "cli/slurm_format.h"
#include "cli/slurm_options.h"
#include "cli/slurm_words.h"
#include "core/request/gpu.h"
#include "runner/daemon_client.h"
#include "runner/slurm_environment.h"
#include "seam/clock.h"
#include "wire/cards.h"
#include "wire/job.h"
#include "wire/show.h"

namespace mete::cli {

namespace {

using Takes = SlurmOption::Takes;
using Here = SlurmOption::Here;
using Jobs = std::vector<wire::JobView>;

constexpr std::string_view kPartition = "mete";

// ---- words --------------------------------------------------------------------------------------

// Options that are understood and change nothing here are kNothing: named in no warning, since
// people have them in aliases.
constexpr std::array kSqueueOptions{
    SlurmOption{"noheader", 'h', Takes::kNothing, Here::kMeant},
    SlurmOption{"user", 'u', Takes::kValue, Here::kMeant},
    SlurmOption{"me", 0, Takes::kNothing, Here::kMeant},
    SlurmOption{"jobs", 'j', Takes::kValue, Here::kMeant},
    SlurmOption{"states", 't', Takes::kValue, Here::kMeant},
    SlurmOption{"name", 'n', Takes::kValue, Here::kMeant},
    SlurmOption{"format", 'o', Takes::kValue, Here::kMeant},
    SlurmOption{"long", 'l', Takes::kNothing, Here::kMeant},
    SlurmOption{"start", 0, Takes::kNothing, Here::kMeant},
    SlurmOption{"Format", 'O', Takes::kValue, Here::kRefused, "say -o with letters"},
    SlurmOption{"iterate", 'i', Takes::kValue, Here::kRefused, "mete top, or mete ps --watch"},
    SlurmOption{"steps", 's', Takes::kMaybe, Here::kRefused, "mete show lists the processes"},
    SlurmOption{"array", 'r', Takes::kNothing},
    SlurmOption{"all", 'a', Takes::kNothing},
    SlurmOption{"sort", 'S'},
    SlurmOption{"partition", 'p'},
    SlurmOption{"account", 'A'},
    SlurmOption{"qos", 'q'},
    SlurmOption{"nodelist", 'w'},
    SlurmOption{"verbose", 'v', Takes::kNothing},
};
constexpr std::array kScancelOptions{
    SlurmOption{"user", 'u', Takes::kValue, Here::kMeant},
    SlurmOption{"me", 0, Takes::kNothing, Here::kMeant},
    SlurmOption{"name", 'n', Takes::kValue, Here::kMeant},
    SlurmOption{"jobname", 0, Takes::kValue, Here::kMeant},
    SlurmOption{"state", 't', Takes::kValue, Here::kMeant},
    SlurmOption{"signal", 's', Takes::kValue, Here::kMeant},
    SlurmOption{"interactive", 'i', Takes::kNothing, Here::kRefused, "name the jobs"},
    SlurmOption{"batch", 'b', Takes::kNothing},
    SlurmOption{"full", 'f', Takes::kNothing},
    SlurmOption{"hurry", 'H', Takes::kNothing},
    SlurmOption{"quiet", 'Q', Takes::kNothing},
    SlurmOption{"verbose", 'v', Takes::kNothing},
    SlurmOption{"partition", 'p', Takes::kValue},
    SlurmOption{"account", 'A', Takes::kValue},
    SlurmOption{"qos", 'q', Takes::kValue},
};
constexpr std::array kSinfoOptions{
    SlurmOption{"noheader", 'h', Takes::kNothing, Here::kMeant},
    SlurmOption{"format", 'o', Takes::kValue, Here::kMeant},
    SlurmOption{"long", 'l', Takes::kNothing, Here::kMeant},
    SlurmOption{"Node", 'N', Takes::kNothing, Here::kMeant},
    SlurmOption{"Format", 'O', Takes::kValue, Here::kRefused, "say -o with letters"},
    SlurmOption{"iterate", 'i', Takes::kValue, Here::kRefused, "mete top"},
    SlurmOption{"all", 'a', Takes::kNothing},
    SlurmOption{"summarize", 's', Takes::kNothing},
    SlurmOption{"exact", 'e', Takes::kNothing},
    SlurmOption{"partition", 'p', Takes::kValue},
    SlurmOption{"nodes", 'n', Takes::kValue},
    SlurmOption{"states", 't', Takes::kValue},
    SlurmOption{"sort", 'S', Takes::kValue},
};
constexpr std::array kScontrolOptions{
    SlurmOption{"oneliner", 'o', Takes::kNothing, Here::kMeant},
    SlurmOption{"details", 'd', Takes::kNothing},
    SlurmOption{"all", 'a', Takes::kNothing},
    SlurmOption{"quiet", 'Q', Takes::kNothing},
};
const SlurmProgram kSqueue{"squeue", kSqueueOptions};
const SlurmProgram kScancel{"scancel", kScancelOptions};
const SlurmProgram kSinfo{"sinfo", kSinfoOptions};
const SlurmProgram kScontrol{"scontrol", kScontrolOptions};

// Options may stand between words, as everywhere in Slurm.
Result<SlurmWords> take_words(const SlurmProgram& program, SlurmWords words,
                              SlurmOptions& options) {
  SlurmWords plain;
  while (!words.empty()) {
    Result<SlurmWords> rest = options.take(program, words);
    if (!rest) return rest;
    words = *std::move(rest);
    if (words.empty()) break;
    plain.push_back(words.front());
    words.erase(words.begin());
  }
  for (const SlurmOption& option : program.options)
    if (const SlurmGiven* given = options.find(option.name);
        given != nullptr && option.here == Here::kRefused)
      return slurm_refused(given->written(), option.instead);
  return plain;
}

std::vector<std::string> list_of(const SlurmOptions& options, std::string_view name) {
  std::vector<std::string> values;
  const std::string list = options.value_of(name);
  for (const std::string_view each : base::split(list, ','))
    if (!base::trim(each).empty()) values.emplace_back(base::trim(each));
  return values;
}

bool is_among(const std::vector<std::string>& list, std::string_view value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// ---- jobs ---------------------------------------------------------------------------------------

// Which jobs are meant; empty lists: all.
struct Chosen {
  std::vector<std::string> users;  // names or numbers
  std::vector<std::string> names;
  std::vector<std::string> states;  // "PD", "RUNNING"; in capitals
  std::vector<core::JobId> ids;

  bool wants(const core::Job& job) const {
    const core::JobSpec& spec = *job.spec;
    if (!users.empty() && !is_among(users, spec.user) && !is_among(users, std::to_string(spec.uid)))
      return false;
    if (!names.empty() && std::none_of(names.begin(), names.end(), [&](const std::string& name) {
          return fnmatch(name.c_str(), spec.name.c_str(), 0) == 0;
        }))
      return false;
    const SlurmState state = slurm_state(job);
    if (!states.empty() && !is_among(states, "ALL") && !is_among(states, state.shortly) &&
        !is_among(states, state.name))
      return false;
    return ids.empty() || std::any_of(ids.begin(), ids.end(), [&](core::JobId id) {
             return id.number == job.id.number && (!id.element || id.element == job.id.element);
           });
  }
  // Whether jobs that have ended can be meant.
  bool ended() const {
    return !ids.empty() || std::any_of(states.begin(), states.end(), [](const std::string& state) {
      constexpr std::array<std::string_view, 6> kUnfinished{"PD",      "PENDING", "R",
                                                            "RUNNING", "S",       "SUSPENDED"};
      return std::find(kUnfinished.begin(), kUnfinished.end(), state) == kUnfinished.end();
    });
  }
};

std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

Result<Chosen> chosen_by(const SlurmOptions& options, const std::vector<std::string>& ids) {
  Chosen chosen;
  chosen.users = list_of(options, "user");
  if (options.has("me")) chosen.users.push_back(std::to_string(getuid()));
  chosen.names = list_of(options, "name");
  for (const std::string& name : list_of(options, "jobname")) chosen.names.push_back(name);
  for (const char* option : {"states", "state"})
    for (const std::string& state : list_of(options, option)) chosen.states.push_back(upper(state));
  for (const std::string& text : ids) {
    const Result<core::JobId> id = parse_slurm_id(text);
    if (!id) return id.error();
    chosen.ids.push_back(*id);
  }
  return chosen;
}

Result<wire::ShowDocument> show_one(runner::DaemonClient& client, core::JobId id) {
  const Result<std::string> body = client.call("GET", job_target(id, "/show"));
  if (!body) return body.error();
  return wire::decode_show(*body);
}

// Limits, folder and dependencies of a job are in `show` alone.
enum class Details { kNo, kYes };

// Without a daemon there are no jobs.
Result<Jobs> jobs_chosen(const Chosen& chosen, Details details = Details::kNo) {
  Result<runner::DaemonClient> client = runner::DaemonClient::open_for_jobs();
  if (!client && client.error().code == ErrorCode::kNotFound) return Jobs();
  if (!client) return client.error();
  const Result<std::string> body =
      client->call("GET", std::string("/v1/jobs") + (chosen.ended() ? "?all=1" : ""));
  if (!body) return body.error();
  Result<Jobs> jobs = wire::decode_ps(*body);
  if (!jobs) return jobs;
  std::erase_if(*jobs, [&](const wire::JobView& view) { return !chosen.wants(view.job); });
  for (wire::JobView& view : *jobs) {
    if (details == Details::kNo) break;
    // Another user's job has no details, and one that is forgotten meanwhile has none any more.
    Result<wire::ShowDocument> shown = show_one(*client, view.job.id);
    if (shown) view = std::move(shown->view);
  }
  return jobs;
}

// ---- squeue -------------------------------------------------------------------------------------

std::int64_t seconds_used(const core::Job& job, WallTime now) {
  if (!job.started) return 0;
  return (job.ended.value_or(now).ms - job.started->ms) / 1000;
}

std::string gres_of(const core::Job& job) {
  const core::Request request = core::request_of(job);
  if (request.gpu == core::no_gpu()) return "N/A";
  return "gres/gpu:" + (request.gpu ? core::to_string(*request.gpu) : "all");
}

std::string dependency_of(const core::Job& job) {
  std::vector<std::string> all;
  for (const core::After& after : job.unmet)
    all.push_back(std::string(after.when == core::When::kOk    ? "afterok:"
                              : after.when == core::When::kAny ? "afterany:"
                                                               : "afternotok:") +
                  to_string(after.id));
  return all.empty() ? "(null)" : base::join(all, ",");
}

std::optional<WallTime> start_of(const wire::JobView& view) {
  if (view.job.started) return view.job.started;
  return view.forecast ? std::optional(view.forecast->at) : view.job.spec->begin;
}

std::optional<WallTime> end_or_limit(const core::Job& job) {
  if (job.ended || !job.started || !job.spec->time_s) return job.ended;
  return WallTime{job.started->ms + static_cast<std::int64_t>(*job.spec->time_s) * 1000};
}

std::string reason_of(const wire::JobView& view) {
  if (view.job.state != core::JobState::kPending) return "None";
  return view.wait ? slurm_reason(view.wait->reason) : "None";
}

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
      return std::string(kPartition);
    case 't':
      return std::string(slurm_state(job).shortly);
    case 'T':
      return std::string(slurm_state(job).name);
    case 'M':
      return slurm_span(seconds_used(job, now));
    case 'l':
      return slurm_limit(spec.time_s);
    case 'L':
      return spec.time_s
                 ? slurm_span(static_cast<std::int64_t>(*spec.time_s) - seconds_used(job, now))
                 : "UNLIMITED";
    case 'S':
      return slurm_time(start_of(view));
    case 'e':
      return slurm_time(end_or_limit(job));
    case 'V':
      return slurm_time(job.submitted);
    case 'D':
      return "1";
    case 'C':
      return std::to_string(spec.request.cpus.value_or(1));
    case 'm':
      return spec.request.ram ? base::to_exact_string(*spec.request.ram) : "0";
    case 'b':
      return gres_of(job);
    case 'N':
    case 'B':
      return host;
    case 'R':
      return pending ? "(" + reason_of(view) + ")" : host;
    case 'r':
      return reason_of(view);
    case 'Q':
    case 'p':
      return std::to_string(job.priority);
    case 'E':
      return dependency_of(job);
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

// ---- scancel ------------------------------------------------------------------------------------

Result<void> check_signal(const SlurmOptions& options) {
  const SlurmGiven* given = options.find("signal");
  if (given == nullptr) return {};
  std::string name = upper(given->value);
  if (name.starts_with("SIG")) name.erase(0, 3);
  if (name == "TERM" || name == "KILL" || name == "15" || name == "9") return {};
  return slurm_refused(given->written() + " " + base::quote(given->value),
                       "send it by kill to a process that mete show lists");
}

// The jobs that words name: "12", "12_3", "12,13", "12_[1-3]".
Result<std::vector<core::JobId>> ids_of(const SlurmWords& words) {
  std::vector<core::JobId> ids;
  for (const std::string& word : words) {
    if (word.find('[') != std::string::npos) {
      const Result<JobRef> ref = parse_job_ref(word);
      if (!ref) return ref.error();
      for (const std::uint32_t element : ref->elements) ids.push_back({ref->number, element});
      continue;
    }
    for (const std::string_view each : base::split(word, ',')) {
      const Result<core::JobId> id = parse_slurm_id(each);
      if (!id) return id.error();
      ids.push_back(*id);
    }
  }
  return ids;
}

// ---- sinfo --------------------------------------------------------------------------------------

struct NodeState {
  std::string shortly;
  std::string name;
};

NodeState node_state(const wire::CardsDocument& cards) {
  std::size_t usable = 0, full = 0, used = 0;
  for (const wire::CardView& card : cards.cards) {
    if (card.state != "ok" || !card.unusable.empty()) continue;
    ++usable;
    if (!card.granted.is_zero() || !card.jobs.empty()) ++used;
    if (card.grantable.is_zero() ||
        std::any_of(card.jobs.begin(), card.jobs.end(),
                    [](const wire::CardView::JobShare& job) { return job.whole; }))
      ++full;
  }
  if (usable == 0) {
    const bool drained =
        std::any_of(cards.cards.begin(), cards.cards.end(),
                    [](const wire::CardView& card) { return card.state == "drained"; });
    return drained ? NodeState{"drain", "drained"} : NodeState{"down", "down"};
  }
  if (used == 0) return {"idle", "idle"};
  return full == usable ? NodeState{"alloc", "allocated"} : NodeState{"mix", "mixed"};
}

// "gpu:h200:2".
std::string node_gres(const wire::CardsDocument& cards) {
  std::map<std::string, std::size_t> types;
  for (const wire::CardView& card : cards.cards) ++types[base::to_lower(card.type)];
  std::vector<std::string> all;
  for (const auto& [type, count] : types)
    all.push_back("gpu:" + (type.empty() ? "" : type + ":") + std::to_string(count));
  return all.empty() ? "(null)" : base::join(all, ",");
}

std::optional<std::string> sinfo_field(char letter, const wire::CardsDocument& cards) {
  const NodeState state = node_state(cards);
  switch (letter) {
    case 'P':
      return std::string(kPartition) + "*";
    case 'R':
      return std::string(kPartition);
    case 'a':
      return "up";
    case 'l':
      return "infinite";
    case 'D':
      return "1";
    case 't':
      return state.shortly;
    case 'T':
      return state.name;
    case 'N':
    case 'n':
      return base::short_host_name();
    case 'G':
      return node_gres(cards);
    case 'c':
      return std::to_string(sysconf(_SC_NPROCESSORS_ONLN));
    case 'm':
      return std::to_string((sysconf(_SC_PHYS_PAGES) >> 10) * (sysconf(_SC_PAGESIZE) >> 10));
    case 'E':
      return "none";
    case 'f':
      return "(null)";
    default:
      return std::nullopt;
  }
}

std::optional<std::string> sinfo_title(char letter) {
  static const std::map<char, std::string> kTitles{
      {'P', "PARTITION"}, {'R', "PARTITION"},     {'a', "AVAIL"}, {'l', "TIMELIMIT"},
      {'D', "NODES"},     {'t', "STATE"},         {'T', "STATE"}, {'N', "NODELIST"},
      {'n', "HOSTNAMES"}, {'G', "GRES"},          {'c', "CPUS"},  {'m', "MEMORY"},
      {'E', "REASON"},    {'f', "AVAIL_FEATURES"}};
  const auto found = kTitles.find(letter);
  return found == kTitles.end() ? std::nullopt : std::optional(found->second);
}

// ---- scontrol -----------------------------------------------------------------------------------

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
  lines.push_back("JobState=" + std::string(slurm_state(job).name) + " Reason=" + reason_of(view) +
                  " Dependency=" + dependency_of(job));
  lines.push_back(std::string("Requeue=") + (spec.requeue ? "1" : "0") +
                  " Restarts=" + std::to_string(job.attempt - 1) +
                  " BatchFlag=" + (spec.detached ? "1" : "0") + " ExitCode=" + exit_of(job));
  lines.push_back("RunTime=" + run_time(seconds_used(job, now)) +
                  " TimeLimit=" + slurm_limit(spec.time_s) + " TimeMin=N/A");
  lines.push_back("SubmitTime=" + slurm_time(job.submitted) +
                  " EligibleTime=" + slurm_time(spec.begin ? spec.begin : job.submitted));
  lines.push_back("StartTime=" + slurm_time(start_of(view)) + " EndTime=" +
                  slurm_time(end_or_limit(job)) + " Deadline=" + slurm_time(spec.deadline));
  lines.push_back("Partition=" + std::string(kPartition) + " AllocNode:Sid=" + host);
  lines.push_back("NodeList=" + (pending ? "" : host) + (pending ? "" : " BatchHost=" + host));
  lines.push_back("NumNodes=1 NumCPUs=" + cpus + " NumTasks=" + std::to_string(spec.request.procs) +
                  " CPUs/Task=" + cpus);
  lines.push_back(
      "MinMemoryNode=" + (spec.request.ram ? base::to_exact_string(*spec.request.ram) : "0") +
      " TresPerNode=" + gres_of(job));
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
  const Result<std::vector<core::JobId>> named = ids_of(words);
  if (!named) return output.fail(named.error());
  std::vector<core::JobId> ids = *named;
  if (words.empty()) {
    const Result<Jobs> jobs = jobs_chosen({});
    if (!jobs) return output.fail(jobs.error());
    for (const wire::JobView& view : *jobs) ids.push_back(view.job.id);
    if (ids.empty()) output.data("No jobs in the system");
    if (ids.empty()) return kExitOk;
  }
  Result<runner::DaemonClient> client = runner::DaemonClient::open_for_jobs();
  if (!client) return output.fail(client.error());
  Failures failures(output);
  for (const core::JobId id : ids) {
    const Result<wire::ShowDocument> shown = show_one(*client, id);
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
  const Result<std::vector<core::JobId>> ids = ids_of(words);
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

int run_squeue(const SlurmWords& words, const Output& output) {
  SlurmOptions options;
  Result<SlurmWords> plain = take_words(kSqueue, words, options);
  if (!plain) return output.fail(plain.error());
  if (!plain->empty())
    return output.fail(Error::invalid(base::quote(plain->front()) + " is not expected here")
                           .with_hint("squeue -j 12 -u alice -t PENDING -o '%i %T'"));
  const Result<Chosen> chosen = chosen_by(options, list_of(options, "jobs"));
  if (!chosen) return output.fail(chosen.error());
  const std::string format = squeue_format(options);
  const bool more = format.find_first_of("lLeCmZE") != std::string::npos;
  const Result<Jobs> jobs = jobs_chosen(*chosen, more ? Details::kYes : Details::kNo);
  if (!jobs) return output.fail(jobs.error());
  const WallTime now = seam::system_clock().wall();
  const Result<std::string> titles = slurm_line(format, squeue_title);
  if (!titles) return output.fail(titles.error());
  if (!options.has("noheader")) output.data(*titles);
  for (const wire::JobView& view : *jobs)
    output.data(*slurm_line(format, [&](char letter) { return squeue_field(letter, view, now); }));
  return kExitOk;
}

int run_scancel(const SlurmWords& words, const Output& output) {
  SlurmOptions options;
  Result<SlurmWords> plain = take_words(kScancel, words, options);
  if (!plain) return output.fail(plain.error());
  if (Result<void> r = check_signal(options); !r) return output.fail(r.error());
  const Result<std::vector<core::JobId>> named = ids_of(*plain);
  if (!named) return output.fail(named.error());
  std::vector<core::JobId> ids = *named;
  const bool filters = options.has("user") || options.has("me") || options.has("name") ||
                       options.has("jobname") || options.has("state");
  if (ids.empty() && !filters)
    return output.fail(Error::invalid("scancel names no job")
                           .with_hint("scancel 12, scancel --me or scancel --name=train"));
  if (filters) {
    Result<Chosen> chosen = chosen_by(options, {});
    if (!chosen) return output.fail(chosen.error());
    // A name alone is a name of one's own jobs, as in Slurm.
    if (chosen->users.empty()) chosen->users.push_back(std::to_string(getuid()));
    chosen->ids = ids;
    const Result<Jobs> jobs = jobs_chosen(*chosen);
    if (!jobs) return output.fail(jobs.error());
    ids.clear();
    for (const wire::JobView& view : *jobs)
      if (view.job.state != core::JobState::kEnded) ids.push_back(view.job.id);
    if (ids.empty()) return kExitOk;
  }
  Result<runner::DaemonClient> client = runner::DaemonClient::open_for_jobs();
  if (!client) return output.fail(client.error());
  Failures failures(output);
  for (const core::JobId id : ids) {
    const Result<std::string> reply = client->call("DELETE", job_target(id));
    // It has ended: that is what was wanted.
    if (!reply && reply.error().code != ErrorCode::kInvalid) failures.add(reply.error());
  }
  return failures.exit_code();
}

int run_sinfo(const SlurmWords& words, const Output& output) {
  SlurmOptions options;
  Result<SlurmWords> plain = take_words(kSinfo, words, options);
  if (!plain) return output.fail(plain.error());
  if (!plain->empty())
    return output.fail(Error::invalid(base::quote(plain->front()) + " is not expected here")
                           .with_hint("sinfo -h -o '%N %T %G'"));
  Result<runner::DaemonClient> client =
      runner::DaemonClient::open(runner::DaemonClient::Start::kIfNeeded);
  if (!client) return output.fail(client.error());
  const Result<std::string> body = client->call("GET", "/v1/cards");
  const Result<wire::CardsDocument> cards = body ? wire::decode_cards(*body) : body.error();
  if (!cards) return output.fail(cards.error());
  const std::string format = options.has("format") ? options.value_of("format")
                             : options.has("Node") ? "%N %.6D %.9P %6t"
                             : options.has("long") ? "%9P %.5a %.10l %.6D %.11T %N %G"
                                                   : "%9P %.5a %.10l %.6D %.6t %N";
  const Result<std::string> titles = slurm_line(format, sinfo_title);
  if (!titles) return output.fail(titles.error());
  if (!options.has("noheader")) output.data(*titles);
  output.data(*slurm_line(format, [&](char letter) { return sinfo_field(letter, *cards); }));
  return kExitOk;
}

int run_scontrol(const SlurmWords& words, const Output& output) {
  SlurmOptions options;
  Result<SlurmWords> plain = take_words(kScontrol, words, options);
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
