// SPDX-License-Identifier: Apache-2.0
// See job_words.h. Each option is parsed by itself and fails with an error that names it, so that
// one option of a job file can be checked alone; rules between options are in check_limits() and
// check_share_is_said(). parse_request() combines the options about cards.
#include "cli/job_words.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"
#include "base/time_words.h"
#include "core/request/gpu.h"
#include "launch/environment.h"

namespace mete::cli {

namespace {

// A limit below what the first page faults need would kill the program at its start.
constexpr Bytes kLeastRam = Bytes::from_mib(4);
constexpr std::size_t kMostOfName = 255;

// As it is shown: bounds count that, so that a printed job file is not refused.
std::string name_of_program(std::string_view program) {
  std::string name = base::as_utf8(program.substr(program.rfind('/') + 1));
  std::size_t most = std::min(name.size(), kMostOfName);
  // Not within a character.
  while (most < name.size() && (static_cast<unsigned char>(name[most]) & 0xc0) == 0x80) --most;
  name.resize(most);
  return name;
}

Result<Bytes> parse_ram(const std::string& text) {
  const Result<Bytes> bytes = base::parse_bytes(text);
  if (!bytes) return Error(bytes.error()).within("--ram");
  if (*bytes < kLeastRam)
    return Error::invalid("--ram " + base::quote(text) + " is too little to start a program in")
        .with_hint("write --ram 4G; the least is " + to_string(kLeastRam));
  return *bytes;
}

Result<std::uint64_t> parse_time(const std::string& text) {
  Result<std::uint64_t> seconds = base::parse_duration(text);
  if (!seconds)
    return Error::invalid("--time " + seconds.error().message)
        .with_hint("write --time 90s, 10m, 2h, 1d, 1:30:00 or 2-12:00:00");
  return seconds;
}

// 0: never.
Result<std::uint64_t> parse_idle(const std::string& text) {
  if (text == "never") return 0;
  Result<std::uint64_t> seconds = base::parse_duration(text);
  if (!seconds)
    return Error::invalid("--idle " + seconds.error().message)
        .with_hint("write --idle 10m, 2h or never");
  return seconds;
}

}  // namespace

Result<bool> parse_visible(const Parsed& parsed) {
  const std::string* kind = parsed.find("--visible");
  if (kind == nullptr || *kind == "uuid") return false;
  if (*kind == "index") return true;
  return Error::invalid("--visible " + base::quote(*kind) + ": there is no such kind")
      .with_hint("write --visible uuid or --visible index");
}

Result<std::vector<std::pair<std::string, std::string>>> parse_variables(const Parsed& parsed) {
  std::vector<std::pair<std::string, std::string>> variables;
  for (const std::string& text : parsed.all("--env")) {
    Result<std::pair<std::string, std::string>> pair = launch::parse_env(text);
    if (!pair) return std::move(pair).error();
    variables.push_back(*std::move(pair));
  }
  return variables;
}

Result<std::int64_t> parse_number(const Parsed& parsed, std::string_view option, std::int64_t least,
                                  std::int64_t most) {
  const std::string& text = *parsed.find(option);
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, wrong] = std::from_chars(text.data(), end, value);
  if (wrong != std::errc() || stop != end || value < least || value > most)
    return Error::invalid(std::string(option) + " " + base::quote(text) +
                          " is not a number between " + std::to_string(least) + " and " +
                          std::to_string(most))
        .with_hint("write " + std::string(option) + " " +
                   std::to_string(std::min<std::int64_t>(4, most)));
  return value;
}

namespace {

Result<void> parse_notifications(const Parsed& parsed, core::NotifySpec& notify) {
  for (const std::string& text : parsed.all("--notify")) {
    if (text == "none") {
      notify.none = true;
      continue;
    }
    Result<core::NotifyTarget> target = core::parse_notify(text);
    if (!target) return std::move(target).error();
    notify.to.push_back(*std::move(target));
  }
  if (notify.none && !notify.to.empty())
    return Error::invalid("--notify none contradicts the other --notify")
        .with_hint("leave one of the two out");
  if (notify.to.size() > core::kMaxNotify)
    return Error::invalid("--notify can be given at most " + std::to_string(core::kMaxNotify) +
                          " times");
  if (const std::string* list = parsed.find("--notify-on"); list != nullptr) {
    Result<std::vector<core::NotifyOn>> on = core::parse_notify_list(*list);
    if (!on) return std::move(on).error();
    notify.on = *std::move(on);
  }
  return {};
}

}  // namespace

Result<void> parse_limits(const Parsed& parsed, core::JobSpec& spec) {
  if (parsed.has("--procs")) {
    const Result<std::int64_t> procs = parse_number(parsed, "--procs", 1, 1024);
    if (!procs) return procs.error();
    spec.request.procs = static_cast<std::uint32_t>(*procs);
  }
  if (parsed.has("--cpus")) {
    const Result<std::int64_t> cpus = parse_number(parsed, "--cpus", 1, 65536);
    if (!cpus) return cpus.error();
    spec.request.cpus = static_cast<unsigned>(*cpus);
  }
  if (const std::string* ram = parsed.find("--ram"); ram != nullptr) {
    const Result<Bytes> bytes = parse_ram(*ram);
    if (!bytes) return bytes.error();
    spec.request.ram = *bytes;
  }
  if (const std::string* time = parsed.find("--time"); time != nullptr) {
    const Result<std::uint64_t> seconds = parse_time(*time);
    if (!seconds) return seconds.error();
    spec.time_s = *seconds;
  }
  if (parsed.has("--priority")) {
    const Result<std::int64_t> priority =
        parse_number(parsed, "--priority", -core::kMaxPriority, core::kMaxPriority);
    if (!priority) return priority.error();
    spec.priority = static_cast<std::int32_t>(*priority);
  }
  spec.request.or_cpu = parsed.has("--or-cpu");
  if (parsed.has("--preemptible") && parsed.has("--not-preemptible"))
    return Error::invalid("--preemptible and --not-preemptible contradict each other")
        .with_hint("leave one of the two out");
  if (parsed.has("--preemptible")) spec.preemptible = true;
  if (parsed.has("--not-preemptible")) spec.preemptible = false;
  if (const std::string* idle = parsed.find("--idle"); idle != nullptr) {
    const Result<std::uint64_t> seconds = parse_idle(*idle);
    if (!seconds) return seconds.error();
    spec.idle_s = *seconds;
  }
  spec.no_preempt = parsed.has("--no-preempt");
  spec.shed = parsed.has("--shed");
  return parse_notifications(parsed, spec.notify);
}

Result<void> check_limits(const core::JobSpec& spec) {
  const bool grows =
      spec.request.gpu && std::holds_alternative<core::Growing>(spec.request.gpu->memory);
  if (spec.shed && !grows)
    return Error::invalid("--shed is for shares that grow").with_hint("say --gpu 8G..20G");
  if (spec.preemptible == false && core::parks_itself(spec))
    return Error::invalid("--not-preemptible and --idle contradict each other")
        .with_hint("leave one of the two out");
  if (spec.request.gpu == core::no_gpu() && core::parks_itself(spec))
    return Error::invalid("--idle is for jobs with a GPU").with_hint("leave --idle out");
  if (spec.notify.none && !spec.notify.on.empty())
    return Error::invalid("--notify none contradicts --notify-on")
        .with_hint("leave one of the two out");
  if (grows && spec.request.procs > 1)
    return Error::invalid("--procs divides a share evenly, and one that grows has no even parts")
        .with_hint("give one size, such as --gpu 8G");
  return {};
}

Result<std::string> job_name(const Parsed& parsed, const std::string& program) {
  const std::string* name = parsed.find("--name");
  if (name == nullptr) return name_of_program(program);
  const std::size_t bytes = base::as_utf8(*name).size();
  if (bytes > kMostOfName)
    return Error::invalid("--name has " + std::to_string(bytes) + " bytes")
        .with_hint("at most " + std::to_string(kMostOfName) + " are shown anywhere");
  return *name;
}

Result<void> check_share_is_said(const core::Request& request) {
  if (request.gpu || !request.devices.empty()) return {};
  return Error::invalid("how much of a card is not said")
      .with_hint("add --gpu, for example --gpu 8G, --gpu 40% or --gpu 1; --cpu-only for none");
}

std::string current_folder() {
  std::array<char, 4096> buffer{};
  return getcwd(buffer.data(), buffer.size()) != nullptr ? buffer.data() : "";
}

Result<core::Request> parse_request(const Parsed& parsed) {
  core::Request request;
  if (const std::string* gpu = parsed.find("--gpu"); gpu != nullptr) {
    if (*gpu == kGpuAuto)
      return Error::invalid("--gpu auto is for mete sweep")
          .with_evidence("mete measures the first trials of a sweep to know what later ones need")
          .with_hint("write a share, such as --gpu 8G, --gpu 40% or --gpu 1");
    Result<core::GpuRequest> parsed_gpu = core::parse_gpu(*gpu);
    if (!parsed_gpu) return std::move(parsed_gpu).error();
    request.gpu = *parsed_gpu;
  }
  if (parsed.has("--cpu-only")) {
    if (request.gpu && *request.gpu != core::no_gpu()) {
      return Error::invalid("--cpu-only and --gpu contradict each other")
          .with_hint("leave one of the two out");
    }
    request.gpu = core::no_gpu();
  }
  if (const std::string* devices = parsed.find("--devices"); devices != nullptr)
    for (const std::string_view part : base::split(*devices, ','))
      request.devices.emplace_back(base::trim(part));
  if (const std::string* type = parsed.find("--gpu-type"); type != nullptr)
    request.gpu_type = *type;
  if (const std::string* where = parsed.find("--where"); where != nullptr) {
    Result<core::Query> query = core::Query::parse(*where);
    if (!query) return std::move(query).error().within("--where");
    request.where = *std::move(query);
  }
  return request;
}

Result<void> parse_program(const Parsed& parsed, std::string_view verb, runner::JobPlan& plan) {
  plan.spec.command = parsed.rest;
  const Result<bool> by_index = parse_visible(parsed);
  if (!by_index) return by_index.error();
  plan.visible_by_index = *by_index;
  Result<std::vector<std::pair<std::string, std::string>>> variables = parse_variables(parsed);
  if (!variables) return std::move(variables).error();
  plan.extra_environment = *std::move(variables);
  if (const std::string* folder = parsed.find("--chdir"); folder != nullptr)
    plan.spec.folder = *folder;
  const std::string example = "mete " + std::string(verb) + " --gpu 8G -- python train.py";
  if (plan.spec.command.empty() && !parsed.has("--dry-run"))
    return Error::invalid("there is no program to run").with_hint(example);
  if (!plan.spec.command.empty() && plan.spec.command.front().empty())
    return Error::invalid("the name of the program is empty").with_hint(example);
  return {};
}

}  // namespace mete::cli
