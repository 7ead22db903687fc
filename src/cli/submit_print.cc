// SPDX-License-Identifier: Apache-2.0
// See submit_print.h.
#include "cli/submit_print.h"

#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/text.h"
#include "cli/json.h"
#include "cli/output.h"
#include "core/request/gpu.h"

namespace mete::cli {

namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;
// true is the only flag that is ever said.
using Value = std::variant<std::string, std::int64_t, bool, std::vector<std::string>, Pairs>;
struct Field {
  std::string_view key;
  Value value;
};

// "2026-11-15T17:00:00Z": what --begin reads; no one has said milliseconds.
std::string to_the_second(WallTime time) { return to_string(time).substr(0, 19) + "Z"; }

std::string factor(std::uint32_t percent) {
  std::string digits = std::to_string(percent % 100);
  if (digits.size() < 2) digits.insert(0, "0");
  return "x" + std::to_string(percent / 100) + (percent % 100 == 0 ? "" : "." + digits);
}

void add_request(const core::JobSpec& spec, std::vector<Field>& fields) {
  const core::Request& request = spec.request;
  if (request.gpu) fields.push_back({"gpu", as_written(*request.gpu)});
  if (!request.devices.empty()) fields.push_back({"devices", request.devices});
  if (request.gpu_type) fields.push_back({"gpu-type", *request.gpu_type});
  if (request.where) fields.push_back({"where", request.where->text()});
  if (request.or_cpu) fields.push_back({"or-cpu", true});
  if (request.procs != 1) fields.push_back({"procs", std::int64_t{request.procs}});
  if (request.cpus) fields.push_back({"cpus", std::int64_t{*request.cpus}});
  if (request.ram) fields.push_back({"ram", base::to_exact_string(*request.ram)});
}

void add_order(const SubmitPlan::Job& planned, std::vector<Field>& fields) {
  const core::JobSpec& spec = planned.job.request.spec;
  if (spec.time_s) fields.push_back({"time", std::to_string(*spec.time_s) + "s"});
  if (spec.priority != 0) fields.push_back({"priority", std::int64_t{spec.priority}});
  std::vector<std::string> after;
  for (const AfterWord& word : planned.job.after) after.push_back(to_string(word));
  if (!after.empty()) fields.push_back({"after", after});
  if (spec.array) fields.push_back({"array", to_string(*spec.array)});
  if (spec.retries != 0) fields.push_back({"retries", std::int64_t{spec.retries}});
  if (spec.retry_gpu_pct) fields.push_back({"retry-gpu", factor(*spec.retry_gpu_pct)});
  if (spec.requeue) fields.push_back({"requeue", true});
  if (spec.held) fields.push_back({"hold", true});
  if (spec.begin) fields.push_back({"begin", to_the_second(*spec.begin)});
  if (spec.deadline) fields.push_back({"deadline", to_the_second(*spec.deadline)});
  if (spec.preemptible)
    fields.push_back({*spec.preemptible ? "preemptible" : "not-preemptible", true});
  if (spec.idle_s)
    fields.push_back(
        {"idle", *spec.idle_s == 0 ? std::string("never") : std::to_string(*spec.idle_s) + "s"});
  if (spec.no_preempt) fields.push_back({"no-preempt", true});
  if (spec.shed) fields.push_back({"shed", true});
  if (!planned.job.request.wait) fields.push_back({"no-wait", true});
}

void add_notify(const core::NotifySpec& notify, std::vector<Field>& fields) {
  std::vector<std::string> to;
  for (const core::NotifyTarget& target : notify.to) to.push_back(to_string(target));
  if (notify.none) to.emplace_back("none");
  if (!to.empty()) fields.push_back({"notify", to});
  std::vector<std::string> on;
  for (const core::NotifyOn each : notify.on) on.emplace_back(to_string(each));
  if (!on.empty()) fields.push_back({"notify-on", on});
}

// The file that was read, from wherever the plan is read again.
std::vector<std::string> script_words(const SubmitPlan::Job& planned) {
  std::vector<std::string> words = planned.job.request.spec.command;
  words.front() = planned.script;
  return words;
}

void add_program(const SubmitPlan::Job& planned, std::vector<Field>& fields) {
  const core::JobSpec& spec = planned.job.request.spec;
  if (!spec.labels.empty())
    fields.push_back({"labels", Pairs(spec.labels.begin(), spec.labels.end())});
  if (!planned.job.variables.empty()) fields.push_back({"env", planned.job.variables});
  fields.push_back({"chdir", spec.folder});
  if (!spec.detached->log.empty()) fields.push_back({"log", spec.detached->log});
  if (!spec.detached->err.empty()) fields.push_back({"err", spec.detached->err});
  if (spec.detached->tty) fields.push_back({"tty", true});
  if (spec.detached->visible_by_index) fields.push_back({"visible", std::string("index")});
  if (planned.job.request.script.empty())
    fields.push_back({"command", spec.command});
  else if (planned.script.empty())
    fields.push_back({"script", planned.job.request.script});
  else
    fields.push_back({"script", script_words(planned)});
}

std::vector<Field> fields_of(const SubmitPlan::Job& planned) {
  std::vector<Field> fields;
  fields.push_back({"name", planned.job.request.spec.name});
  add_request(planned.job.request.spec, fields);
  add_order(planned, fields);
  add_notify(planned.job.request.spec.notify, fields);
  add_program(planned, fields);
  return fields;
}

std::string json_of(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return json_string(*text);
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (std::holds_alternative<bool>(value)) return "true";
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    std::vector<std::string> elements;
    for (const std::string& text : *texts) elements.push_back(json_string(text));
    return json_array(elements);
  }
  JsonObject object;
  for (const auto& [key, text] : std::get<Pairs>(value)) object.text(key, text);
  return object.str();
}

// Plain where YAML takes it for the text that it is; JSON is YAML otherwise.
std::string yaml_of(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./%+-";
  const bool plain = !text.empty() && text.front() != '-' && text.front() != '%' &&
                     text.find_first_not_of(kPlain) == std::string::npos &&
                     base::to_lower(text) != "null";
  return plain ? text : json_string(text);
}

std::string yaml_of(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? yaml_of(*text) : json_of(value);
}

}  // namespace

std::string plan_as_yaml(const SubmitPlan& plan) {
  const bool several = plan.jobs.size() > 1;
  std::string text = several ? "jobs:\n" : "";
  for (const SubmitPlan::Job& job : plan.jobs) {
    bool first = true;
    for (const auto& [key, value] : fields_of(job)) {
      if (several) text += first ? "  - " : "    ";
      text.append(key).append(": ").append(yaml_of(value)).append("\n");
      first = false;
    }
  }
  text.pop_back();
  return text;
}

std::string plan_as_json(const SubmitPlan& plan) {
  std::vector<std::string> jobs;
  for (const SubmitPlan::Job& job : plan.jobs) {
    JsonObject object;
    for (const auto& [key, value] : fields_of(job)) object.raw(key, json_of(value));
    jobs.push_back(object.str());
  }
  return JsonObject()
      .text("schema", "mete.submit-plan/1")
      .text("at", timestamp())
      .raw("jobs", json_array(jobs))
      .str();
}

}  // namespace mete::cli
