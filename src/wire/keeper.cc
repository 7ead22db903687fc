// SPDX-License-Identifier: Apache-2.0
// See keeper.h. Environment and script follow the JSON unchanged: they are large, and may have any
// bytes.
#include "wire/keeper.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "wire/values.h"

namespace mete::wire {

namespace {

constexpr std::string_view kFirstWord = "mete-keeper-plan";
constexpr std::string_view kVersion = "1";
constexpr std::size_t kMaxFirstLine = 100;

std::string file_name(std::string_view text) {
  std::string name(text);
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

std::string filled_in(std::string_view pattern, const core::JobSpec& spec, core::JobId id) {
  std::string path;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char letter = pattern[i] == '%' && i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (letter == '\0')
      path += pattern[i];
    else if (letter == 'j')
      path += to_string(id);
    else if (letter == 'A')
      path += std::to_string(id.number);
    else if (letter == 'a')
      path += std::to_string(id.element.value_or(0));
    else if (letter == 'x')
      path += file_name(spec.name);
    else if (letter == 'u')
      path += file_name(spec.user);
    else if (letter == '%')
      path += '%';
    else
      (path += '%') += letter;
    if (letter != '\0') ++i;
  }
  return path;
}

}  // namespace

void fields_of(auto& list, Is<KeeperPlan> auto& plan) {
  list.must("job", plan.job);
  list.must("attempt", plan.attempt);
  list.must("spec", object("the job", plan.spec));
  list.check("spec", plan.spec.detached && !plan.spec.command.empty(), "that of a detached job");
  list.put("grant", each("the grant", plan.grant));
  list.put("cards", each("the card", plan.cards));
  list.check("cards", plan.cards.size() == plan.grant.size(), "one for each of the grant");
  list.opt("driver", plan.driver);
  list.opt("readings", exact(plan.readings));
  list.opt("simulated", exact(plan.simulated));
  list.opt("keep", exact(plan.keep));
  list.check("keep", !plan.keep.empty(), "text");
  list.opt("state", exact(plan.state));
  list.check("state", !plan.state.empty(), "text");
  list.opt("as_owner", plan.as_owner);
  list.opt("log", exact(plan.log));
  list.check("log", !plan.log.empty(), "text");
  list.opt("err", exact(plan.err));
  list.must("log_limit_bytes", plan.log_limit);
  list.must("grace_ms", plan.grace_ms);
  list.check("grace_ms", plan.grace_ms <= 1'000'000'000'000, "a time that can be");
  list.put("preload", exact(plan.preload));
  list.opt("simgpu", exact(plan.simgpu));
  list.opt("probe", exact(plan.probe));
  list.opt("park", object("the mover", plan.park));
  list.opt("socket", exact(plan.socket));
  list.opt("checkpoint", exact(plan.checkpoint));
}

std::string encode(const KeeperPlan& plan) {
  const std::string json = to_json(plan, Owner::kSaid);
  std::string bytes = std::string(kFirstWord) + " " + std::string(kVersion) + " " +
                      std::to_string(json.size()) + " " + std::to_string(plan.environment.size()) +
                      " " + std::to_string(plan.script.size()) + "\n";
  bytes.reserve(bytes.size() + json.size() + plan.environment.size() + plan.script.size());
  return ((bytes += json) += plan.environment) += plan.script;
}

Result<KeeperPlan> decode_keeper_plan(std::string_view bytes) {
  const std::size_t end = bytes.substr(0, kMaxFirstLine).find('\n');
  const Error no_plan = Error::corrupt("this is no keeper's plan that we understand");
  if (end == std::string_view::npos) return no_plan;
  const std::vector<std::string_view> words = base::split(bytes.substr(0, end), ' ');
  bytes.remove_prefix(end + 1);
  if (words.size() != 5 || words[0] != kFirstWord || words[1] != kVersion) return no_plan;
  std::string_view parts[3];
  for (std::size_t i = 0; i < 3; ++i) {
    const Result<std::uint64_t> size = base::parse_uint(words[i + 2]);
    if (!size || *size > bytes.size()) return no_plan;
    parts[i] = bytes.substr(0, *size);
    bytes.remove_prefix(*size);
  }
  if (!bytes.empty()) return no_plan;
  Result<KeeperPlan> plan =
      decode<KeeperPlan>(parts[0], "the keeper's plan", Unknown::kIgnored, Owner::kSaid);
  if (!plan) return plan;
  plan->environment = parts[1];
  plan->script = parts[2];
  return plan;
}

std::vector<std::string> environment_lines(std::string_view blob) {
  std::vector<std::string> lines;
  for (const std::string_view line : base::split(blob, '\0'))
    if (!line.empty()) lines.emplace_back(line);
  return lines;
}

std::string log_path(const core::JobSpec& spec, core::JobId id, std::string_view logs) {
  if (spec.detached && !spec.detached->log.empty()) return filled_in(spec.detached->log, spec, id);
  return base::join_path(logs, to_string(id) + ".log");
}

std::string error_log_path(const core::JobSpec& spec, core::JobId id) {
  return spec.detached ? filled_in(spec.detached->err, spec, id) : "";
}

std::string terminal_path(std::string_view state, core::JobId id, std::uint32_t attempt) {
  return base::join_path(base::join_path(state, "terminals"),
                         to_string(id) + "." + std::to_string(attempt));
}

}  // namespace mete::wire
