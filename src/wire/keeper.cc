// SPDX-License-Identifier: Apache-2.0
// See keeper.h. Environment and script stand behind the JSON as they are: they are large, and they
// are anything.
#include "wire/keeper.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "wire/fields.h"
#include "wire/json_text.h"
#include "wire/values.h"

namespace mete::wire {

namespace {

constexpr std::string_view kFirstWord = "mete-keeper-plan";
constexpr std::string_view kVersion = "1";
constexpr std::size_t kMaxFirstLine = 100;

void put_exact(JsonText& out, std::string_view key, std::string_view text) {
  if (text.empty()) return;
  out.key(key).exact(text);
}

void put_machine_cards(JsonText& out, const std::vector<core::Card>& cards) {
  out.key("cards").open_list();
  for (const core::Card& card : cards) {
    out.open();
    out.put("name", card.name);
    out.put("type", card.type);
    out.put("total_bytes", card.total);
    out.put("capacity_bytes", card.capacity);
    out.close();
  }
  out.close_list();
}

std::string plan_json(const KeeperPlan& plan) {
  JsonText out;
  out.open();
  put_id(out, "job", plan.job);
  out.put("attempt", plan.attempt);
  out.key("spec");
  put_spec(out, plan.spec, Owner::kSaid);
  put_cards(out, "grant", plan.grant);
  put_machine_cards(out, plan.cards);
  out.put_if("driver", plan.driver);
  put_exact(out, "readings", plan.readings);
  put_exact(out, "simulated", plan.simulated);
  put_exact(out, "keep", plan.keep);
  put_exact(out, "state", plan.state);
  out.flag_if("as_owner", plan.as_owner);
  put_exact(out, "log", plan.log);
  put_exact(out, "err", plan.err);
  out.put("log_limit_bytes", plan.log_limit);
  out.put("grace_ms", plan.grace_ms);
  out.key("preload").open_list();
  for (const std::string& path : plan.preload) out.exact(path);
  out.close_list();
  put_exact(out, "simgpu", plan.simgpu);
  put_exact(out, "probe", plan.probe);
  if (plan.park) put_door(out, *plan.park);
  put_exact(out, "socket", plan.socket);
  put_exact(out, "checkpoint", plan.checkpoint);
  out.close();
  return out.take();
}

std::vector<core::Card> machine_cards_from(Fields& fields) {
  std::vector<core::Card> cards;
  for (const Json& element : fields.list("cards")) {
    Fields card(element, "the card");
    core::Card& one = cards.emplace_back();
    one.name = card.text("name");
    one.type = card.text("type");
    one.total = card.bytes("total_bytes");
    one.capacity = card.bytes("capacity_bytes");
    if (!card.ok()) fields.fail(card.error());
  }
  return cards;
}

Result<KeeperPlan> plan_from(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the keeper's plan");
  KeeperPlan plan;
  plan.job = id_from(fields, "job");
  plan.attempt = fields.number<std::uint32_t>("attempt");
  Result<core::JobSpec> spec = spec_from(fields.child("spec"), Owner::kSaid);
  if (!spec) return std::move(spec).error();
  plan.spec = *std::move(spec);
  if (!plan.spec.detached || plan.spec.command.empty())
    fields.fail("spec", "that of a detached job");
  plan.grant = cards_from(fields, "grant");
  plan.cards = machine_cards_from(fields);
  if (plan.cards.size() != plan.grant.size()) fields.fail("cards", "one for each of the grant");
  plan.driver = fields.text_if("driver").value_or("");
  plan.readings = fields.exact_if("readings").value_or("");
  plan.simulated = fields.exact_if("simulated").value_or("");
  plan.keep = fields.exact("keep");
  plan.state = fields.exact("state");
  plan.as_owner = fields.flag("as_owner");
  plan.log = fields.exact("log");
  plan.err = fields.exact_if("err").value_or("");
  plan.log_limit = fields.bytes("log_limit_bytes");
  plan.grace_ms = fields.number("grace_ms");
  if (plan.grace_ms > 1'000'000'000'000) fields.fail("grace_ms", "a time that can be");
  plan.preload = fields.exacts("preload");
  plan.simgpu = fields.exact_if("simgpu").value_or("");
  plan.probe = fields.exact_if("probe").value_or("");
  plan.park = door_if(fields);
  plan.socket = fields.exact_if("socket").value_or("");
  plan.checkpoint = fields.exact_if("checkpoint").value_or("");
  if (!fields.ok()) return fields.error();
  return plan;
}

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

std::string encode(const KeeperPlan& plan) {
  const std::string json = plan_json(plan);
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
  Result<KeeperPlan> plan = plan_from(parts[0]);
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
