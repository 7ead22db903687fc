// SPDX-License-Identifier: Apache-2.0
// See run_plan.h.
#include "cli/run_plan.h"

#include <unistd.h>

#include <array>
#include <limits>

#include "base/text.h"
#include "cli/job_words.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "core/request/gpu.h"

namespace mete::cli {

namespace {

constexpr OptionSpec later(std::string_view name, std::string_view value,
                           std::string_view comes_with) {
  return {.name = name, .value = value, .not_built = comes_with};
}

constexpr std::string_view kQueue = "it comes with the queue (mete submit)";
constexpr std::string_view kParking = "it comes with parking";

constexpr std::array kOptions{
    kGpuOption,
    kDevicesOption,
    kGpuTypeOption,
    kCpuOnlyOption,
    OptionSpec{"--or-cpu", "", "if there is no room now, run without a GPU instead of waiting"},
    OptionSpec{"--procs", "N",
               "start N processes that share the grant evenly, each capped to its part, with\n"
               "RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun sets them"},
    OptionSpec{"--cpus", "N", "at most so many CPUs (a cgroup limit, where allowed)"},
    OptionSpec{"--ram", "SIZE", "at most so much memory (a cgroup limit, where allowed)"},
    OptionSpec{"--time", "TIME",
               "end the job after 90, 90s, 10m, 2h, 1d, 1:30:00 or 2-12:00:00 (exit code 124)"},
    OptionSpec{"--no-wait", "", "do not wait: exit code 75 if there is no room now"},
    OptionSpec{"--exec", "",
               "become the program instead of staying its parent: no hints, no --time, and\n"
               "mete does not learn its exit code"},
    OptionSpec{"--name", "NAME", "the job's name in lists (default: the program's)"},
    kVisibleOption,
    kEnvOption,
    kChdirOption,
    kQuietOption,
    kOutputOption,
    later("--dry-run", "", "ask mete cap --dry-run what a share comes to"),
    later("--where", "EXPR", "it comes with the query language"),
    later("--compute", "SHARE", "it comes with MPS support"),
    later("--priority", "N", kQueue),
    later("--after", "ID", kQueue),
    later("--array", "RANGE", kQueue),
    later("--retries", "N", kQueue),
    later("--retry-gpu", "SHARE", kQueue),
    later("--requeue", "", kQueue),
    later("--begin", "TIME", kQueue),
    later("--deadline", "TIME", kQueue),
    later("--notify", "WHERE", "it comes with notifications"),
    later("--preemptible", "", kParking),
    later("--shed", "", kParking),
    later("--tty", "", kQueue),
    later("--log", "FILE", kQueue),
    later("--err", "FILE", kQueue),
    later("--pool", "NAME", "it comes with Slurm support"),
};

// A limit below what the first page faults take kills the program before it has begun.
constexpr Bytes kLeastRam = Bytes::from_mib(4);

Result<std::uint64_t> number_of(const Parsed& parsed, std::string_view option, std::uint64_t least,
                                std::uint64_t most) {
  const Result<std::uint64_t> value = base::parse_uint(*parsed.find(option));
  if (!value || *value < least || *value > most)
    return Error::invalid(std::string(option) + " " + base::quote(*parsed.find(option)) +
                          " is not a number between " + std::to_string(least) + " and " +
                          std::to_string(most))
        .with_hint("write " + std::string(option) + " 4");
  return *value;
}

Result<void> parse_limits(const Parsed& parsed, RunPlan& plan) {
  core::JobSpec& spec = plan.request.spec;
  if (parsed.has("--procs")) {
    const Result<std::uint64_t> procs = number_of(parsed, "--procs", 1, 1024);
    if (!procs) return procs.error();
    spec.request.procs = plan.job.procs = static_cast<std::uint32_t>(*procs);
  }
  if (parsed.has("--cpus")) {
    const Result<std::uint64_t> cpus = number_of(parsed, "--cpus", 1, 65536);
    if (!cpus) return cpus.error();
    spec.request.cpus = plan.job.cpus = static_cast<unsigned>(*cpus);
  }
  if (const std::string* ram = parsed.find("--ram"); ram != nullptr) {
    const Result<Bytes> bytes = base::parse_bytes(*ram);
    if (!bytes) return Error(bytes.error()).within("--ram");
    if (*bytes < kLeastRam)
      return Error::invalid("--ram " + base::quote(*ram) + " is too little to start a program in")
          .with_hint("write --ram 4G; the least is " + to_string(kLeastRam));
    spec.request.ram = plan.job.ram = *bytes;
  }
  if (const std::string* time = parsed.find("--time"); time != nullptr) {
    const Result<std::uint64_t> seconds = parse_duration(*time);
    if (!seconds) return seconds.error();
    spec.time_s = *seconds;
    plan.job.time_limit = std::chrono::seconds(*seconds);
  }
  return {};
}

std::string name_of_program(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

// What lists show of a command: of thousands of file names the first are enough, and a request has
// a limit.
std::vector<std::string> shown(const std::vector<std::string>& command) {
  constexpr std::size_t kMost = 16 << 10;
  std::vector<std::string> words;
  std::size_t left = kMost;
  for (const std::string& word : command) {
    if (word.size() + 1 > left) {
      words.push_back(word.substr(0, left) + "…");
      break;
    }
    words.push_back(word);
    left -= word.size() + 1;
  }
  return words;
}

std::string current_folder() {
  std::array<char, 4096> buffer{};
  return getcwd(buffer.data(), buffer.size()) != nullptr ? buffer.data() : "";
}

Error not_a_duration(std::string_view text) {
  return Error::invalid("--time " + base::quote(text) + " is no duration")
      .with_hint("write --time 90s, 10m, 2h, 1d, 1:30:00 or 2-12:00:00");
}

// Digits only, and no overflow later on.
std::optional<std::uint64_t> small_number(std::string_view text) {
  const Result<std::uint64_t> value = base::parse_uint(text);
  return value && *value <= 1'000'000'000 ? std::optional(*value) : std::nullopt;
}

}  // namespace

std::span<const OptionSpec> run_options() { return kOptions; }

Result<std::uint64_t> parse_duration(std::string_view text) {
  std::uint64_t seconds = 0;
  if (text.find(':') != std::string_view::npos) {  // [DAYS-]HOURS:MINUTES[:SECONDS]
    const std::size_t dash = text.find('-');
    if (dash != std::string_view::npos) {
      const std::optional<std::uint64_t> days = small_number(text.substr(0, dash));
      if (!days) return not_a_duration(text);
      seconds = *days * 24;
    }
    const std::string_view clock = dash == std::string_view::npos ? text : text.substr(dash + 1);
    std::vector<std::string_view> parts = base::split(clock, ':');
    if (parts.size() > 3 || (parts.size() == 2 && dash != std::string_view::npos))
      return not_a_duration(text);
    // As in Slurm: two parts are minutes and seconds.
    if (parts.size() == 2) parts.insert(parts.begin(), "0");
    for (std::size_t i = 0; i < 3; ++i) {
      const std::optional<std::uint64_t> part = small_number(parts[i]);
      if (!part || (i > 0 && *part > 59)) return not_a_duration(text);
      seconds = (i == 0 ? seconds : seconds * 60) + *part;
    }
  } else {
    std::uint64_t unit = 1;
    std::string_view digits = text;
    if (!text.empty() && (text.back() < '0' || text.back() > '9')) {
      const std::string_view units = "smhd";
      const std::array<std::uint64_t, 4> each{1, 60, 3600, 86400};
      const std::size_t at = units.find(text.back());
      if (at == std::string_view::npos) return not_a_duration(text);
      unit = each[at];
      digits.remove_suffix(1);
    }
    const std::optional<std::uint64_t> number = small_number(digits);
    if (!number) return not_a_duration(text);
    seconds = *number * unit;
  }
  if (seconds == 0) return not_a_duration(text);
  return seconds;
}

Result<RunPlan> make_run_plan(const Parsed& parsed) {
  RunPlan plan;
  core::JobSpec& spec = plan.request.spec;
  Result<core::Request> request = parse_request(parsed);
  if (!request) return std::move(request).error();
  spec.request = *std::move(request);
  if (Result<void> r = parse_program(parsed, "run", plan.job); !r) return std::move(r).error();
  if (Result<void> r = parse_limits(parsed, plan); !r) return std::move(r).error();
  if (!spec.request.gpu && spec.request.devices.empty())
    return Error::invalid("how much of a card is not said")
        .with_hint("add --gpu, for example --gpu 8G, --gpu 40% or --gpu 1; --cpu-only for none");
  spec.request.or_cpu = parsed.has("--or-cpu");
  spec.command = shown(plan.job.command);
  const std::string* name = parsed.find("--name");
  constexpr std::size_t kMostOfName = 255;
  if (name != nullptr && name->size() > kMostOfName)
    return Error::invalid("--name has " + std::to_string(name->size()) + " bytes")
        .with_hint("at most " + std::to_string(kMostOfName) + " are shown anywhere");
  spec.name =
      name != nullptr ? *name : name_of_program(spec.command.front()).substr(0, kMostOfName);
  spec.folder = plan.job.folder.empty() ? current_folder() : plan.job.folder;
  plan.request.wait = !parsed.has("--no-wait");
  plan.exec = parsed.has("--exec");
  plan.quiet = parsed.has("--quiet");
  if (plan.exec && (plan.job.procs > 1 || spec.time_s))
    return Error::invalid(std::string("--exec and ") + (plan.job.procs > 1 ? "--procs" : "--time") +
                          " contradict each other: nobody is left to do it")
        .with_hint("leave --exec out");
  if (Result<void> r = check_not_nested(); !r && spec.request.gpu != core::no_gpu())
    return std::move(r).error();
  return plan;
}

std::string grant_json(const JobPlan& plan, const std::string& id) {
  std::vector<std::string> cards;
  for (const PlanCard& card : plan.cards)
    cards.push_back(JsonObject()
                        .number("index", card.machine.card.index)
                        .text("uuid", card.machine.card.uuid)
                        .text("name", card.machine.name)
                        .number("bytes", card.limit.count())
                        .str());
  return JsonObject()
      .text("schema", "mete.run/1")
      .text("at", timestamp())
      .text("id", id)
      .raw("cards", json_array(cards))
      .str();
}

}  // namespace mete::cli
