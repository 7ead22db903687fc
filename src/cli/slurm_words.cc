// SPDX-License-Identifier: Apache-2.0
// See slurm_words.h.
#include "cli/slurm_words.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "base/bytes.h"
#include "base/process.h"
#include "base/text.h"
#include "base/time_words.h"
#include "core/job/job.h"
#include "runner/slurm_environment.h"

namespace mete::cli {

namespace {

using Words = std::vector<Word>;

Error wrong(const SlurmGiven& given, std::string_view value, const std::string& why,
            std::string_view hint) {
  return Error::invalid(given.written() + " " + base::quote(value) + " " + why)
      .with_hint(std::string(hint));
}

Error at_place(const std::string& where, Error error) {
  return where.empty() ? error : std::move(error).within(where);
}

std::string place_of(const SlurmGiven& given) {
  return given.where.empty() ? "" : given.where + ": ";
}

// ---- options that have an equivalent ----

// Replaces placeholders of several nodes (%N) by their value on one machine; keeps those that mete
// knows.
Result<std::string> pattern(const SlurmGiven& given) {
  const std::string& path = given.value;
  std::string text;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%') {
      text += path[i];
      continue;
    }
    const char what = ++i < path.size() ? path[i] : '\0';
    if (what != '\0' && std::string_view("jAaxu%").find(what) != std::string_view::npos) {
      text.append(1, '%').append(1, what);
    } else if (what == 'J') {
      text += "%j";
    } else if (what == 'n' || what == 't') {
      text += "0";
    } else if (what == 'N') {
      text += base::short_host_name();
    } else {
      return wrong(given, path, "has a pattern that is not known here",
                   "%j, %A, %a, %x, %u, %N, %n and %t are");
    }
  }
  return text;
}

// "afterok:12:13,afterany:14" becomes "12:ok,13:ok,14:any".
Result<std::string> dependency(const SlurmGiven& given) {
  const std::string& value = given.value;
  if (value.find('?') != std::string::npos)
    return slurm_refused(given.written() + " with ?", "mete waits for all of them: write commas");
  std::vector<std::string> all;
  for (const std::string_view part : base::split(value, ',')) {
    const std::vector<std::string_view> words = base::split(part, ':');
    const std::string kind = base::to_lower(words.front());
    const char* when = kind == "afterok"      ? ":ok"
                       : kind == "afterany"   ? ":any"
                       : kind == "afternotok" ? ":fail"
                                              : nullptr;
    if (when == nullptr)
      return slurm_refused(given.written() + " " + base::quote(words.front()),
                           "write afterok, afterany or afternotok");
    if (words.size() == 1)
      return wrong(given, part, "names no job", "write afterok:12 or afterok:12:13");
    for (std::size_t i = 1; i < words.size(); ++i) all.push_back(std::string(words[i]) + when);
  }
  return base::join(all, ",");
}

Result<std::string> priority_of_nice(const SlurmGiven& given) {
  const std::string& value = given.value;
  std::int64_t nice = 100;  // --nice alone
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, nice);
  if (!value.empty() && (error != std::errc() || stop != end))
    return wrong(given, value, "is no number", "write --nice=100");
  const std::int64_t most = core::kMaxPriority;
  return std::to_string(-std::clamp(nice, -most, most));
}

Result<Words> variables(const SlurmGiven& given) {
  Words words;
  bool all = false;
  for (const std::string_view part : base::split(given.value, ',')) {
    if (part == "ALL") all = true;
    if (part.find('=') != std::string_view::npos)
      words.push_back({"--env", std::string(part), given.where});
  }
  if (all) return words;
  return slurm_refused(given.written() + " " + base::quote(given.value),
                       "a job has all of its submitter's environment; write env -i in the script");
}

Result<Words> time_limit(const SlurmGiven& given) {
  const Result<std::uint64_t> seconds = parse_slurm_time(given.value);
  if (!seconds)
    return wrong(given, given.value, "is no time",
                 "write 90 (minutes), 1:30:00 or 2-12:00:00 (days and hours)");
  if (*seconds == 0) return Words{};
  return Words{{"--time", std::to_string(*seconds) + "s", given.where}};
}

Result<Words> translate(const SlurmGiven& given) {
  const auto is = [&](std::string_view name) { return given.option->name == name; };
  const auto say = [&](std::string_view option, Result<std::string> value) -> Result<Words> {
    if (!value) return std::move(value).error();
    return Words{{option, *std::move(value), given.where}};
  };
  if (is("job-name")) return say("--name", given.value);
  if (is("array")) return say("--array", given.value);
  if (is("begin")) return say("--begin", given.value);
  if (is("deadline")) return say("--deadline", given.value);
  if (is("priority")) return say("--priority", given.value);
  if (is("chdir")) return say("--chdir", given.value);
  if (is("comment")) return say("--label", "comment=" + given.value);
  if (is("requeue")) return say("--requeue", std::string());
  if (is("hold")) return say("--hold", std::string());
  if (is("output")) return say("--log", pattern(given));
  if (is("error")) return say("--err", pattern(given));
  if (is("dependency")) return say("--after", dependency(given));
  if (is("nice")) return say("--priority", priority_of_nice(given));
  if (is("time")) return time_limit(given);
  if (is("export")) return variables(given);
  return Words{};  // --no-requeue is the default; the other options are reported together
}

// ---- cards, CPUs and memory, which multiply each other ----

struct Gpus {
  std::uint64_t count = 1;
  std::string type;
  std::string where;
};

// "2", "h200:2", "h200".
Result<Gpus> parse_gpus(const SlurmGiven& given, std::string_view value) {
  const std::size_t colon = value.rfind(':');
  const Result<std::uint64_t> count = base::parse_uint(value.substr(colon + 1));
  Gpus gpus{count ? *count : 1, "", given.where};
  if (!count) gpus.type = value;
  if (count && colon != std::string_view::npos) gpus.type = value.substr(0, colon);
  if (value.empty() || gpus.count > 1024 || gpus.type.find(':') != std::string::npos ||
      (colon != std::string_view::npos && gpus.type.empty()))
    return wrong(given, given.value, "is no number of GPUs",
                 "write 2 or H200:2, after gpu: for --gres");
  return gpus;
}

// "gpu:2,lscratch:10": only the cards matter here.
Result<std::optional<Gpus>> parse_gres(const SlurmGiven& given,
                                       std::vector<std::string>& warnings) {
  std::optional<Gpus> found;
  for (std::string_view part : base::split(given.value, ',')) {
    if (part.starts_with("gres/")) part.remove_prefix(5);
    const std::string_view kind = part.substr(0, part.find(':'));
    if (kind == "shard" || kind == "mps")
      return slurm_refused(given.written() + " " + base::quote(part),
                           "say how much of a card: #METE --gpu 8G or --gpu 40%");
    if (kind == "none") continue;
    if (kind != "gpu") {
      warnings.push_back(place_of(given) + given.written() + " " + base::quote(part) +
                         " has no meaning here and was left out");
      continue;
    }
    if (found)
      return slurm_refused(given.written() + " " + base::quote(given.value),
                           "ask for one kind of GPU");
    const Result<Gpus> gpus =
        part == "gpu" ? Gpus{1, "", given.where} : parse_gpus(given, part.substr(4));
    if (!gpus) return gpus.error();
    found = *gpus;
  }
  return found;
}

// "2G", "512" (MiB), "0" (all there is, so no limit).
Result<Bytes> parse_memory(const SlurmGiven& given) {
  const std::string& value = given.value;
  if (value == "0") return Bytes();
  const bool plain = !value.empty() && value.back() >= '0' && value.back() <= '9';
  Result<Bytes> bytes = base::parse_bytes(value + (plain ? "M" : ""));
  if (bytes) return bytes;
  return wrong(given, value, "is no amount of memory", "write 512M or 16G");
}

class Resources {
 public:
  Resources(const std::vector<SlurmGiven>& given, std::vector<std::string>& warnings)
      : given_(given), warnings_(warnings) {}

  Result<Words> words() {
    for (const SlurmGiven& given : given_)
      if (Result<void> r = take(given); !r) return at_place(given.where, std::move(r).error());
    if (Result<void> r = add_tasks(); !r) return std::move(r).error();
    Words words;
    if (gpus_) words.push_back({"--gpu", std::to_string(gpus_->count), gpus_->where});
    if (gpus_ && gpus_->count > 0 && !gpus_->type.empty())
      words.push_back({"--gpu-type", gpus_->type, gpus_->where});
    if (Result<void> r = add_cpus(words); !r) return std::move(r).error();
    if (Result<void> r = add_memory(words); !r) return std::move(r).error();
    if (tasks_given_)
      words.push_back(
          {"--env", std::string(runner::kSlurmTasks) + "=" + std::to_string(tasks_), ""});
    return words;
  }

 private:
  Result<void> take(const SlurmGiven& given) {
    const std::string_view name = given.option->name;
    if (name == "gres") {
      const Result<std::optional<Gpus>> gpus = parse_gres(given, warnings_);
      if (!gpus) return gpus.error();
      return *gpus ? agree(**gpus) : Result<void>();
    }
    if (name == "gpus" || name == "gpus-per-node" || name == "gpus-per-task") {
      Result<Gpus> gpus = parse_gpus(given, given.value);
      if (!gpus) return gpus.error();
      if (name != "gpus-per-task") return agree(*gpus);
      per_task_ = *gpus;
      return {};
    }
    if (name.starts_with("ntasks")) tasks_given_ = true;
    if (name == "cpus-per-task" || name == "cpus-per-gpu") {
      const Result<std::uint64_t> number = base::parse_uint(given.value);
      if (!number || *number == 0 || *number > 65536)
        return wrong(given, given.value, "is no number of CPUs", "write 4");
      (name == "cpus-per-task" ? cpus_ : cpus_per_gpu_) = Counted{*number, given.where};
    }
    if (name == "mem" || name == "mem-per-cpu" || name == "mem-per-gpu") {
      const Result<Bytes> bytes = parse_memory(given);
      if (!bytes) return bytes.error();
      memory_ = Counted{bytes->count(), given.where};
      memory_per_ = name;
    }
    return {};
  }

  // Several options for one quantity must agree.
  Result<void> agree(const Gpus& gpus) {
    if (gpus_ && gpus_->count != gpus.count)
      return Error::invalid("the options ask for " + std::to_string(gpus_->count) + " and for " +
                            std::to_string(gpus.count) + " GPUs")
          .with_hint("say it once");
    const std::string type = gpus.type.empty() && gpus_ ? gpus_->type : gpus.type;
    gpus_ = gpus;
    gpus_->type = type;
    return {};
  }

  // A quantity for each task is needed once for each task.
  Result<void> add_tasks() {
    SlurmOptions options;
    for (const SlurmGiven& given : given_)
      if (given.option->name.starts_with("ntasks")) options.add(given);
    const Result<std::uint64_t> tasks = slurm_tasks(options, gpu_count());
    if (!tasks) return tasks.error();
    tasks_ = *tasks;
    if (!per_task_) return {};
    per_task_->count *= tasks_;
    Result<void> agreed = agree(*per_task_);
    if (!agreed) return at_place(per_task_->where, std::move(agreed).error());
    return {};
  }

  Result<void> add_cpus(Words& words) const {
    if (cpus_) words.push_back({"--cpus", std::to_string(cpus_->number * tasks_), cpus_->where});
    if (cpus_ || !cpus_per_gpu_) return {};
    const std::uint64_t all = cpus_per_gpu_->number * gpu_count();
    if (all == 0) return no_gpus("cpus-per-gpu", cpus_per_gpu_->where);
    words.push_back({"--cpus", std::to_string(all), cpus_per_gpu_->where});
    return {};
  }

  Result<void> add_memory(Words& words) const {
    if (!memory_ || memory_->number == 0) return {};
    const std::uint64_t each_cpu = cpus_           ? cpus_->number * tasks_
                                   : cpus_per_gpu_ ? cpus_per_gpu_->number * gpu_count()
                                                   : tasks_;
    const std::uint64_t times = memory_per_ == "mem-per-cpu"   ? each_cpu
                                : memory_per_ == "mem-per-gpu" ? gpu_count()
                                                               : 1;
    if (times == 0) return no_gpus(memory_per_, memory_->where);
    const std::optional<Bytes> all = Bytes::from_bytes(memory_->number).checked_mul(times);
    if (!all)
      return at_place(memory_->where, Error::invalid("--" + std::string(memory_per_) +
                                                     " is more than any machine has")
                                          .with_hint("write 16G"));
    words.push_back({"--ram", base::to_exact_string(*all), memory_->where});
    return {};
  }

  static Error no_gpus(std::string_view name, const std::string& where) {
    return at_place(
        where,
        Error::invalid("--" + std::string(name) + " without a GPU").with_hint("add --gpus=1"));
  }

  std::uint64_t gpu_count() const { return gpus_ ? gpus_->count : 0; }

  struct Counted {
    std::uint64_t number = 0;
    std::string where;
  };
  const std::vector<SlurmGiven>& given_;
  std::vector<std::string>& warnings_;
  std::optional<Gpus> gpus_;
  std::optional<Gpus> per_task_;
  std::uint64_t tasks_ = 1;
  bool tasks_given_ = false;
  std::optional<Counted> cpus_;
  std::optional<Counted> cpus_per_gpu_;
  std::optional<Counted> memory_;  // the last of the three, as in Slurm, which refuses two
  std::string_view memory_per_;
};

// ---- mail: one option says when, the other to whom ----

const SlurmGiven* last_given(const std::vector<SlurmGiven>& given, std::string_view name) {
  const SlurmGiven* last = nullptr;
  for (const SlurmGiven& each : given)
    if (each.option->name == name) last = &each;
  return last;
}

// The moments of a mail, in our words: "start,end". A moment without a meaning here causes a
// warning.
std::string mail_moments(const SlurmGiven& type, std::vector<std::string>& warnings) {
  struct Meaning {
    std::string_view theirs;
    std::string_view ours;
  };
  constexpr Meaning kMeanings[] = {{"none", ""},
                                   {"begin", "start"},
                                   {"end", "end"},
                                   {"fail", "fail,oom"},
                                   {"all", "start,end,fail,oom"}};
  std::vector<std::string> moments;
  for (const std::string_view part : base::split(type.value, ',')) {
    const std::string lower = base::to_lower(base::trim(part));
    const auto* const known =
        std::find_if(std::begin(kMeanings), std::end(kMeanings),
                     [&](const Meaning& meaning) { return meaning.theirs == lower; });
    if (known == std::end(kMeanings)) {
      warnings.push_back(place_of(type) + type.written() + " " + base::quote(part) +
                         " has no meaning here and was left out");
      continue;
    }
    for (const std::string_view moment : base::split(known->ours, ','))
      if (!moment.empty() && std::find(moments.begin(), moments.end(), moment) == moments.end())
        moments.emplace_back(moment);
  }
  return base::join(moments, ",");
}

Words mail_words(const std::vector<SlurmGiven>& given, std::vector<std::string>& warnings) {
  const SlurmGiven* const type = last_given(given, "mail-type");
  const SlurmGiven* const user = last_given(given, "mail-user");
  if (type == nullptr) {
    if (user != nullptr)
      warnings.push_back(place_of(*user) + user->written() + " without --mail-type sends no mail");
    return {};
  }
  const std::string moments = mail_moments(*type, warnings);
  if (moments.empty()) return {};
  Words words{{"--notify-on", moments, type->where}};
  if (user == nullptr)
    words.push_back({"--notify", "mail", type->where});
  else
    for (const std::string_view address : base::split(user->value, ','))
      words.push_back({"--notify", "mail:" + std::string(base::trim(address)), user->where});
  return words;
}

}  // namespace

Error slurm_refused(const std::string& what, std::string_view instead) {
  return Error::unsupported(what + " is not possible here")
      .with_evidence("without it this would be another job")
      .with_hint(std::string(instead));
}

Result<std::uint64_t> parse_slurm_time(std::string_view text) {
  const std::string lower = base::to_lower(text);
  if (lower == "unlimited" || lower == "infinite" || text == "0") return std::uint64_t{0};
  const bool minutes = text.find_first_of(":-") == std::string_view::npos;
  const bool digits = text.find_first_not_of("0123456789:-") == std::string_view::npos;
  const Result<std::uint64_t> seconds =
      base::parse_duration(std::string(text) + (minutes ? "m" : ""));
  if (seconds && digits) return seconds;
  return Error::invalid(base::quote(text) + " is no time");
}

Result<std::vector<Word>> slurm_words(const std::vector<SlurmGiven>& given,
                                      std::vector<std::string>& warnings) {
  Result<Words> words = Resources(given, warnings).words();
  if (!words) return words;
  for (const SlurmGiven& each : given) {
    Result<Words> more = translate(each);
    if (!more) return at_place(each.where, std::move(more).error());
    words->insert(words->end(), more->begin(), more->end());
  }
  const Words mail = mail_words(given, warnings);
  words->insert(words->end(), mail.begin(), mail.end());
  return words;
}

}  // namespace mete::cli
