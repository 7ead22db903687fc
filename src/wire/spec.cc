// SPDX-License-Identifier: Apache-2.0
// What a job was asked to be (values.h: put_spec, spec_from), in requests, plans and the log. Words
// that go to the program as they are (arguments, paths) are exact.
#include "base/text.h"
#include "wire/values.h"

namespace mete::wire {

namespace {

using core::Detached;
using core::JobSpec;
using core::ResourceLimit;

constexpr std::uint64_t kUnlimited = UINT64_MAX;  // RLIM_INFINITY
constexpr std::uint32_t kMaxRetries = 1'000;
constexpr std::uint32_t kMaxRetryPct = 10'000;

void put_exact(JsonText& out, std::string_view key, const std::string& text) {
  if (!text.empty()) out.key(key).exact(text);
}

// "7:1024:4096 8:-:-": resource, soft and hard limit; "-": there is none. Every submitted job has
// some sixteen of these, which as lists of lists were most of its size.
std::string to_text(const std::vector<ResourceLimit>& limits) {
  std::string text;
  const auto add = [&](std::uint64_t limit) {
    text += ':';
    text += limit == kUnlimited ? "-" : std::to_string(limit);
  };
  for (const ResourceLimit& limit : limits) {
    if (!text.empty()) text += ' ';
    text += std::to_string(limit.resource);
    add(limit.soft);
    add(limit.hard);
  }
  return text;
}

void put_detached(JsonText& out, const Detached& detached, Owner owner) {
  out.key("detached").open();
  if (owner == Owner::kSaid) {
    out.put_if("environment", std::string_view(detached.environment));
    out.put_if("script", std::string_view(detached.script));
    if (detached.environment_bytes != 0) out.put("environment_bytes", detached.environment_bytes);
    if (detached.script_bytes != 0) out.put("script_bytes", detached.script_bytes);
    out.put("gid", detached.gid);
    out.key("groups").open_list();
    for (const std::uint32_t group : detached.groups) out.value(group);
    out.close_list();
  }
  out.put("umask", detached.umask);
  if (!detached.limits.empty()) out.put("limits", to_text(detached.limits));
  put_exact(out, "log", detached.log);
  put_exact(out, "err", detached.err);
  out.flag_if("tty", detached.tty);
  out.flag_if("visible_by_index", detached.visible_by_index);
  out.close();
}

std::vector<ResourceLimit> limits_from(std::string_view text, Fields& fields) {
  std::vector<ResourceLimit> limits;
  for (const std::string_view word : base::split(text, ' ')) {
    const std::vector<std::string_view> parts = base::split(word, ':');
    const auto number = [&](std::size_t at) -> std::optional<std::uint64_t> {
      if (at >= parts.size()) return std::nullopt;
      if (at > 0 && parts[at] == "-") return kUnlimited;
      const Result<std::uint64_t> value = base::parse_uint(parts[at]);
      return value ? std::optional(*value) : std::nullopt;
    };
    const std::optional<std::uint64_t> resource = number(0), soft = number(1), hard = number(2);
    if (parts.size() != 3 || !resource || *resource > 31 || !soft || !hard) {
      fields.fail("limits", "like 7:1024:4096 8:-:-");
      return {};
    }
    limits.push_back({static_cast<std::int32_t>(*resource), *soft, *hard});
  }
  return limits;
}

Detached detached_from(const Json& json, Owner owner, Fields& spec) {
  Fields fields(json, "the detached job", spec.unknown());
  Detached detached;
  if (owner == Owner::kSaid) {
    detached.environment = fields.text_if("environment").value_or("");
    detached.script = fields.text_if("script").value_or("");
    detached.environment_bytes = fields.number_if("environment_bytes").value_or(0);
    detached.script_bytes = fields.number_if("script_bytes").value_or(0);
    detached.gid = fields.number<std::uint32_t>("gid");
    for (const Json& group : fields.list("groups")) {
      const bool fits = group.is_number_unsigned() && group.get<std::uint64_t>() <= UINT32_MAX;
      if (fits) detached.groups.push_back(group.get<std::uint32_t>());
      if (!fits) fields.fail("groups", "a list of numbers");
    }
  }
  detached.umask = fields.number<std::uint32_t>("umask");
  if (detached.umask > 0777) fields.fail("umask", "at most 511 (0777)");
  if (const auto text = fields.text_if("limits")) detached.limits = limits_from(*text, fields);
  detached.log = fields.exact_if("log").value_or("");
  detached.err = fields.exact_if("err").value_or("");
  detached.tty = fields.flag("tty");
  detached.visible_by_index = fields.flag("visible_by_index");
  fields.refuse_unknown();
  if (!fields.ok()) spec.fail(fields.error());
  return detached;
}

void put_notify(JsonText& out, const core::NotifySpec& notify) {
  if (notify == core::NotifySpec{}) return;
  out.key("notify").open();
  out.key("to").open_list();
  for (const core::NotifyTarget& target : notify.to) out.exact(to_string(target));
  out.close_list();
  if (!notify.on.empty()) {
    out.key("on").open_list();
    for (const core::NotifyOn on : notify.on) out.value(to_string(on));
    out.close_list();
  }
  out.flag_if("none", notify.none);
  out.close();
}

core::NotifySpec notify_from(Fields& spec) {
  core::NotifySpec notify;
  if (!spec.has("notify")) return notify;
  Fields fields(spec.child("notify"), "notify", spec.unknown());
  for (const std::string& text : fields.exacts("to"))
    if (Result<core::NotifyTarget> target = core::parse_notify(text))
      notify.to.push_back(*std::move(target));
    else
      fields.fail("to", "a list of targets");
  if (notify.to.size() > core::kMaxNotify) fields.fail("to", "at most 8 targets");
  for (const std::string& text : fields.texts("on")) {
    const std::optional<core::NotifyOn> on = core::parse_notify_on(text);
    if (on) notify.on.push_back(*on);
    if (!on) fields.fail("on", "start, end, fail, oom, park or idle");
  }
  notify.none = fields.flag("none");
  fields.refuse_unknown();
  if (!fields.ok()) spec.fail(fields.error());
  return notify;
}

// When and how often.
void put_terms(JsonText& out, const JobSpec& spec) {
  out.put_if("time_s", spec.time_s);
  if (spec.priority != 0) out.put("priority", spec.priority);
  if (!spec.after.empty()) put_after(out, "after", spec.after);
  if (spec.array) out.put("array", to_string(*spec.array));
  if (spec.retries != 0) out.put("retries", spec.retries);
  out.put_if("retry_gpu_pct", spec.retry_gpu_pct);
  out.flag_if("requeue", spec.requeue);
  out.flag_if("held", spec.held);
  out.put_if("preemptible", spec.preemptible);
  out.flag_if("no_preempt", spec.no_preempt);
  out.flag_if("shed", spec.shed);
  out.put_if("begin", spec.begin);
  out.put_if("deadline", spec.deadline);
}

void read_terms(Fields& fields, JobSpec& spec) {
  spec.time_s = fields.number_if("time_s");
  spec.priority = fields.number_if<std::int32_t>("priority").value_or(0);
  if (spec.priority > core::kMaxPriority || spec.priority < -core::kMaxPriority)
    fields.fail("priority", "between -1000 and 1000");
  spec.after = after_from(fields, "after");
  if (const auto text = fields.text_if("array")) spec.array = fields.take(core::parse_array(*text));
  spec.retries = fields.number_if<std::uint32_t>("retries").value_or(0);
  if (spec.retries > kMaxRetries) fields.fail("retries", "at most 1000");
  spec.retry_gpu_pct = fields.number_if<std::uint32_t>("retry_gpu_pct");
  if (spec.retry_gpu_pct && (*spec.retry_gpu_pct <= 100 || *spec.retry_gpu_pct > kMaxRetryPct))
    fields.fail("retry_gpu_pct", "more than 100 and at most 10000");
  spec.requeue = fields.flag("requeue");
  spec.held = fields.flag("held");
  if (fields.has("preemptible")) spec.preemptible = fields.flag("preemptible");
  spec.no_preempt = fields.flag("no_preempt");
  spec.shed = fields.flag("shed");
  spec.begin = fields.time_if("begin");
  spec.deadline = fields.time_if("deadline");
}

}  // namespace

void put_spec(JsonText& out, const JobSpec& spec, Owner owner) {
  out.open();
  out.key("name").exact(spec.name);
  out.key("command").open_list();
  for (const std::string& word : spec.command) out.exact(word);
  out.close_list();
  out.key("cwd").exact(spec.folder);
  if (owner == Owner::kSaid) {
    out.put_if("command_content", std::string_view(spec.command_content));
    if (spec.command_bytes != 0) out.put("command_bytes", spec.command_bytes);
    out.put("uid", spec.uid);
    out.key("user").exact(spec.user);
  }
  out.key("request").open();
  put_request(out, spec.request);
  out.close();
  put_terms(out, spec);
  if (!spec.labels.empty()) out.put("labels", spec.labels);
  put_notify(out, spec.notify);
  if (owner == Owner::kSaid) out.put_if("key", std::string_view(spec.key));
  if (spec.detached) put_detached(out, *spec.detached, owner);
  out.close();
}

Result<JobSpec> spec_from(const Json& json, Owner owner) {
  Fields fields(json, "the job", owner == Owner::kUnsaid ? Unknown::kRefused : Unknown::kIgnored);
  JobSpec spec;
  spec.name = fields.exact("name");
  spec.command = fields.exacts("command");
  spec.folder = fields.exact_if("cwd").value_or("");
  if (owner == Owner::kSaid) {
    spec.command_content = fields.text_if("command_content").value_or("");
    spec.command_bytes = fields.number_if("command_bytes").value_or(0);
    spec.uid = fields.number<std::uint32_t>("uid");
    spec.user = fields.exact("user");
    spec.key = fields.text_if("key").value_or("");
  }
  spec.request = fields.take(request_from(fields.child("request"), fields.unknown()));
  read_terms(fields, spec);
  spec.labels = fields.text_map("labels");
  spec.notify = notify_from(fields);
  if (fields.has("detached"))
    spec.detached = detached_from(fields.child("detached"), owner, fields);
  fields.refuse_unknown();
  if (!fields.ok()) return fields.error();
  return spec;
}

}  // namespace mete::wire
