// SPDX-License-Identifier: Apache-2.0
// See submit_job.h.
#include "cli/submit_job.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "base/time_words.h"
#include "cli/job_words.h"
#include "core/request/gpu.h"
#include "launch/environment.h"
#include "runner/slurm_environment.h"
#include "seam/clock.h"

namespace mete::cli {

namespace {

constexpr std::int64_t kMaxRetries = 1000;
constexpr std::size_t kMaxLabels = 32;
constexpr std::size_t kMaxLabelKey = 64;
constexpr std::size_t kMaxLabelValue = 256;

// What a job finds in its environment about itself: of another job it would be wrong.
constexpr std::array<std::string_view, 13> kOfAnotherJob{
    "METE_JOB_ID",        "METE_ATTEMPT", "METE_JOB_TOKEN",   "METE_GRANT",
    "METE_GPU_MEM_BYTES", "METE_PART",    "METE_ARRAY_INDEX", "METE_ARRAY_JOB_ID",
    runner::kSlurmTasks,  "METE_SWEEP",   "METE_TRIAL",       "METE_PARAMS",
    "METE_METRICS"};
constexpr std::string_view kParameter = "METE_PARAM_";  // of a trial, with the name

Parsed to_parsed(const std::vector<Word>& words) {
  Parsed parsed;
  for (const Word& word : words) {
    const auto options = submit_options();
    const auto spec = std::find_if(options.begin(), options.end(), [&](const OptionSpec& each) {
      return each.name == word.option;
    });
    if (spec->value.empty() && word.value == kNo) continue;
    parsed.options.emplace_back(word.option, word.value);
  }
  return parsed;
}

// ---- values, each by itself ----

// "x1.5": percent.
Result<std::uint32_t> parse_factor(const std::string& text) {
  const Result<base::Milli> factor = text.starts_with("x")
                                         ? base::parse_milli(std::string_view(text).substr(1))
                                         : Result<base::Milli>(Error::invalid(""));
  const std::uint64_t percent =
      factor && factor->whole <= 10 ? factor->whole * 100 + factor->thousandths / 10 : 0;
  if (percent <= 100 || percent > 1000 || factor->thousandths % 10 != 0)
    return Error::invalid("--retry-gpu " + base::quote(text) + " is no factor from x1.01 to x10")
        .with_hint("write --retry-gpu x1.5 for half as much again");
  return static_cast<std::uint32_t>(percent);
}

Result<std::pair<std::string, std::string>> parse_label(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    return Error::invalid("--label " + base::quote(text) + " is not KEY=VALUE")
        .with_hint("write --label project=vision");
  std::string key = text.substr(0, equals);
  std::string value = text.substr(equals + 1);
  // As job files show them: a printed one is not refused.
  if (base::as_utf8(key).size() > kMaxLabelKey || base::as_utf8(value).size() > kMaxLabelValue)
    return Error::invalid("--label " + base::quote(text) + " is too long")
        .with_hint("a key has at most " + std::to_string(kMaxLabelKey) + " bytes, a value " +
                   std::to_string(kMaxLabelValue));
  return std::pair(std::move(key), std::move(value));
}

// Names that mean something else in each program.
bool is_of_our_own(std::string_view path) {
  constexpr std::array<std::string_view, 4> kNames{"/dev/stdout", "/dev/stderr", "/dev/stdin",
                                                   "/dev/tty"};
  return std::find(kNames.begin(), kNames.end(), path) != kNames.end() ||
         path.starts_with("/dev/fd/") || path.starts_with("/proc/self/") ||
         path.starts_with("/proc/thread-self/");
}

Result<void> check_log(std::string_view option, const std::string& path) {
  const std::string said = std::string(option) + " " + base::quote(path);
  if (path.empty() || path.back() == '/')
    return Error::invalid(said + " is no file").with_hint("write " + std::string(option) + " FILE");
  if (is_of_our_own(path))
    return Error::invalid(said +
                          " would be the terminal or file of this command, which the job outlives")
        .with_hint("leave it out: mete logs finds the output in the state folder");
  for (std::size_t at = path.find('%'); at != std::string::npos; at = path.find('%', at + 2)) {
    constexpr std::string_view kLetters = "jAaxu%";
    if (at + 1 < path.size() && kLetters.find(path[at + 1]) != std::string_view::npos) continue;
    return Error::invalid(said + ": there is no " + base::quote(path.substr(at, 2)))
        .with_hint("%j is the job, %A the array, %a the element, %x the name, %u the user, %% a %");
  }
  return {};
}

Result<void> fill_times(const Parsed& words, const Surroundings& around, core::JobSpec& spec) {
  for (const char* option : {"--begin", "--deadline"}) {
    const std::string* text = words.find(option);
    if (text == nullptr) continue;
    const Result<WallTime> moment = base::parse_moment(*text, around.now);
    if (!moment)
      return Error::invalid(std::string(option) + " " + moment.error().message)
          .with_hint(moment.error().hint);
    (std::string_view(option) == "--begin" ? spec.begin : spec.deadline) = *moment;
  }
  if (spec.deadline && *spec.deadline <= around.now)
    return Error::invalid("--deadline " + base::quote(*words.find("--deadline")) + " has passed")
        .with_hint("write now+2h or \"tomorrow 08:00\"");
  return {};
}

Result<void> fill_repeats(const Parsed& words, core::JobSpec& spec) {
  if (const std::string* text = words.find("--array"); text != nullptr) {
    const Result<core::Array> array = core::parse_array(*text);
    if (!array) return array.error();
    spec.array = *array;
  }
  if (words.has("--retries")) {
    const Result<std::int64_t> retries = parse_number(words, "--retries", 0, kMaxRetries);
    if (!retries) return retries.error();
    spec.retries = static_cast<std::uint32_t>(*retries);
  }
  if (const std::string* text = words.find("--retry-gpu"); text != nullptr) {
    const Result<std::uint32_t> factor = parse_factor(*text);
    if (!factor) return factor.error();
    spec.retry_gpu_pct = *factor;
  }
  spec.requeue = words.has("--requeue");
  spec.held = words.has("--hold");
  return {};
}

Result<void> fill_labels(const Parsed& words, core::JobSpec& spec) {
  for (const std::string& text : words.all("--label")) {
    Result<std::pair<std::string, std::string>> label = parse_label(text);
    if (!label) return std::move(label).error();
    spec.labels[label->first] = label->second;
  }
  if (spec.labels.size() > kMaxLabels)
    return Error::invalid("a job has at most " + std::to_string(kMaxLabels) + " labels")
        .with_hint("leave some out");
  return {};
}

Result<void> fill_files(const Parsed& words, core::Detached& detached) {
  for (const char* option : {"--log", "--err"}) {
    const std::string* path = words.find(option);
    if (path == nullptr) continue;
    if (Result<void> r = check_log(option, *path); !r) return r;
    (std::string_view(option) == "--log" ? detached.log : detached.err) = *path;
  }
  detached.tty = words.has("--tty");
  const Result<bool> by_index = parse_visible(words);
  if (!by_index) return by_index.error();
  detached.visible_by_index = *by_index;
  return {};
}

// Files can hold what no program can be given.
Result<void> check_no_nul(std::string_view what, std::string_view text) {
  if (text.find('\0') == std::string_view::npos) return {};
  return Error::invalid(std::string(what) + " has a byte 0 in it").with_hint("take it out");
}

// Every value that the words have; what is missing stays as it is.
Result<void> fill(const Parsed& words, const std::vector<std::string>* names,
                  const Surroundings& around, PlannedJob& job) {
  core::JobSpec& spec = job.request.spec;
  for (const auto& [option, value] : words.options)
    if (Result<void> r = check_no_nul(option, value); !r) return r;
  Result<core::Request> request = parse_request(words);
  if (!request) return std::move(request).error();
  spec.request = *std::move(request);
  if (Result<void> r = parse_limits(words, spec); !r) return r;
  if (Result<void> r = fill_times(words, around, spec); !r) return r;
  if (Result<void> r = fill_repeats(words, spec); !r) return r;
  if (Result<void> r = fill_labels(words, spec); !r) return r;
  if (Result<void> r = fill_files(words, spec.detached.emplace()); !r) return r;
  Result<std::vector<std::pair<std::string, std::string>>> variables = parse_variables(words);
  if (!variables) return std::move(variables).error();
  job.variables = *std::move(variables);
  for (const std::string& text : words.all("--after")) {
    Result<std::vector<AfterWord>> after = parse_after(text, names);
    if (!after) return std::move(after).error();
    job.after.insert(job.after.end(), after->begin(), after->end());
  }
  if (Result<std::string> name = job_name(words, ""); !name) return std::move(name).error();
  job.request.wait = !words.has("--no-wait");
  return {};
}

// ---- all together ----

Result<void> check_retry_gpu(const core::JobSpec& spec) {
  if (!spec.retry_gpu_pct) return {};
  // Not without a GPU, of whole cards, or of a share that grows by itself.
  const bool larger =
      spec.request.gpu && (std::holds_alternative<core::Size>(spec.request.gpu->memory) ||
                           std::holds_alternative<core::Fraction>(spec.request.gpu->memory));
  if (!larger)
    return Error::invalid("--retry-gpu needs a share of a card that can be made larger")
        .with_hint("write --gpu 8G or --gpu 40%, or leave --retry-gpu out");
  if (spec.retries == 0)
    return Error::invalid("--retry-gpu needs --retries")
        .with_evidence(
            "--retries says how often the job runs again, --retry-gpu with how much more")
        .with_hint("add --retries 2, or leave --retry-gpu out");
  return {};
}

Result<void> check_together(const PlannedJob& job, bool share_follows, const Surroundings& around) {
  const core::JobSpec& spec = job.request.spec;
  if (!share_follows)
    if (Result<void> r = check_share_is_said(spec.request); !r) return r;
  if (Result<void> r = check_limits(spec); !r) return r;
  if (spec.deadline && spec.begin && *spec.deadline <= *spec.begin)
    return Error::invalid("its deadline is not after its begin")
        .with_evidence("begin " + to_string(*spec.begin) + ", deadline " +
                       to_string(*spec.deadline))
        .with_hint("times are local; a time of day alone is the next time that clocks show it");
  if (spec.detached->tty && !spec.detached->err.empty())
    return Error::invalid("--tty and --err contradict each other: a terminal has one output")
        .with_hint("leave --err out");
  if (Result<void> r = check_retry_gpu(spec); !r) return r;
  const char* later = spec.held                                ? "--hold"
                      : !job.after.empty()                     ? "--after"
                      : spec.begin && *spec.begin > around.now ? "--begin"
                      : spec.array                             ? "--array"
                                                               : nullptr;
  if (!job.request.wait && later != nullptr)
    return Error::invalid(std::string("--no-wait and ") + later + " contradict each other")
        .with_hint("leave one of the two out");
  return {};
}

// "50%" in the name of a folder is no pattern.
std::string without_patterns(const std::string& folder) {
  std::string text;
  for (const char each : folder) text.append(each == '%' ? 2 : 1, each);
  return text;
}

Result<void> set_places(const Parsed& words, const Surroundings& around, core::JobSpec& spec) {
  const std::string* chdir = words.find("--chdir");
  spec.folder = chdir == nullptr ? around.folder : *chdir;
  if (!spec.folder.starts_with("/") && !around.folder.empty())
    spec.folder = base::join_path(around.folder, spec.folder);
  if (!spec.folder.starts_with("/"))
    return Error::io("this folder is gone").with_hint("give another by --chdir");
  for (std::string* file : {&spec.detached->log, &spec.detached->err})
    if (!file->empty() && file->front() != '/')
      *file = base::join_path(without_patterns(spec.folder), *file);
  return {};
}

std::vector<std::string> environment_for(
    const Surroundings& around, const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> lines;
  const auto add = [&](std::string_view name, const std::string& line) {
    std::erase_if(lines, [&](const std::string& before) {
      return before.size() > name.size() && before[name.size()] == '=' && before.starts_with(name);
    });
    lines.push_back(line);
  };
  for (const std::string& line : around.environment) {
    const std::size_t equals = line.find('=');
    const std::string name = line.substr(0, equals);
    if (equals == std::string::npos || equals == 0 || name.starts_with(kParameter) ||
        std::find(kOfAnotherJob.begin(), kOfAnotherJob.end(), name) != kOfAnotherJob.end())
      continue;
    if (name != "LD_PRELOAD") {
      lines.push_back(line);
      continue;
    }
    // Inside a job our own library is in it.
    const std::string preload = launch::merge_preload(line.substr(equals + 1), {});
    std::vector<std::string> kept;
    for (const std::string_view part : base::split(preload, ':'))
      if (!part.empty() && !part.substr(part.rfind('/') + 1).starts_with("libmete"))
        kept.emplace_back(part);
    if (!kept.empty()) lines.push_back("LD_PRELOAD=" + base::join(kept, ":"));
  }
  for (const auto& [name, value] : variables) add(name, name + "=" + value);
  return lines;
}

Result<void> set_command(const JobWords& words, const Parsed& options, PlannedJob& job) {
  core::JobSpec& spec = job.request.spec;
  std::string program;
  if (!words.shell.empty()) {
    spec.command = {"/bin/sh", "-c", words.shell};
    const std::string_view line = base::trim(words.shell);
    program = line.substr(0, line.find_first_of(" \t\n;&|<>()"));
  } else {
    spec.command = words.command;
    if (spec.command.empty())
      return Error::invalid("there is no program to run")
          .with_hint("mete submit --gpu 8G -- python train.py");
    program = spec.command.front();
  }
  if (spec.command.front().empty())
    return Error::invalid("the name of the program is empty")
        .with_hint("mete submit --gpu 8G -- python train.py");
  for (const std::string& word : spec.command)
    if (Result<void> r = check_no_nul("the command", word); !r) return r;
  if (words.script) job.request.script = words.script->text;
  Result<std::string> name = job_name(options, program);
  if (!name) return std::move(name).error();
  spec.name = *std::move(name);
  return {};
}

// Commas between brackets belong to a list of elements.
std::vector<std::string_view> split_jobs(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') inside = true;
    if (text[i] == ']') inside = false;
    if (text[i] != ',' || inside) continue;
    parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

}  // namespace

Surroundings Surroundings::ours() {
  Surroundings around;
  around.folder = current_folder();
  around.environment = base::own_environment();
  around.umask = ::umask(0);
  (void)::umask(around.umask);
  around.now = seam::system_clock().wall();
  return around;
}

Result<std::vector<AfterWord>> parse_after(std::string_view text,
                                           const std::vector<std::string>* names) {
  std::vector<AfterWord> all;
  for (const std::string_view part : split_jobs(text)) {
    AfterWord after;
    std::string_view job = base::trim(part);
    const std::size_t colon = job.rfind(':');
    if (colon != std::string_view::npos) {
      const std::optional<core::When> when = core::parse_when(job.substr(colon + 1));
      if (!when)
        return Error::invalid("--after " + base::quote(part) + ": there is no " +
                              base::quote(job.substr(colon + 1)))
            .with_hint("write :ok, :any or :fail");
      after.when = *when;
      job = job.substr(0, colon);
    }
    Result<JobRef> ref = parse_job_ref(job);
    if (ref) {
      after.job = *std::move(ref);
    } else if (names == nullptr) {
      return Error::invalid("--after " + ref.error().message).with_hint(ref.error().hint);
    } else if (std::find(names->begin(), names->end(), job) != names->end()) {
      after.name = job;
    } else {
      const std::string_view near =
          base::nearest(job, std::vector<std::string_view>(names->begin(), names->end()));
      return Error::invalid("--after " + base::quote(job) + ": no job of this file has that name")
          .with_hint(near.empty() ? "names stand under name:; numbers are those of mete ps"
                                  : "did you mean " + std::string(near) + "?");
    }
    all.push_back(std::move(after));
  }
  return all;
}

std::string to_string(const AfterWord& after) {
  return (after.name.empty() ? to_string(after.job) : after.name) + ":" +
         std::string(core::to_string(after.when));
}

Result<void> check_word(const Word& word, const std::vector<std::string>* names,
                        const Surroundings& around) {
  PlannedJob job;
  return fill(to_parsed({word}), names, around, job);
}

Result<PlannedJob> make_job(const JobWords& words, const Surroundings& around) {
  PlannedJob job;
  const Parsed options = to_parsed(words.options);
  if (Result<void> r = fill(options, words.names, around, job); !r) return std::move(r).error();
  if (Result<void> r = set_command(words, options, job); !r) return std::move(r).error();
  if (Result<void> r = check_together(job, words.share_follows, around); !r)
    return std::move(r).error();
  core::JobSpec& spec = job.request.spec;
  if (Result<void> r = set_places(options, around, spec); !r) return std::move(r).error();
  spec.detached->umask = around.umask;
  job.request.environment = environment_for(around, job.variables);
  return job;
}

}  // namespace mete::cli
