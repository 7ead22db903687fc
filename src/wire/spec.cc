// SPDX-License-Identifier: Apache-2.0
// The spec of a job, in requests, plans and the log. Words that go to the program unchanged
// (arguments, paths) are exact.
#include "base/text.h"
#include "wire/values.h"

namespace mete::wire {

namespace {

using core::JobSpec;
using core::ResourceLimit;

constexpr std::uint64_t kUnlimited = UINT64_MAX;  // RLIM_INFINITY
constexpr std::uint32_t kMaxRetries = 1'000;
constexpr std::uint64_t kMaxIdleS = 100ull * 365 * 86'400;  // so that it can be added to a time
constexpr std::uint32_t kMaxRetryPct = 10'000;

// "7:1024:4096 8:-:-": resource, soft and hard limit; "-": unlimited. Every submitted job has about
// sixteen of these, which as lists of lists were most of its size.
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

void limits_field(Writer& list, const std::vector<ResourceLimit>& limits) {
  if (!limits.empty()) list.put("limits", to_text(limits));
}
void limits_field(Reader& list, std::vector<ResourceLimit>& limits) {
  if (const std::optional<std::string> text = list.fields().text_if("limits"))
    limits = limits_from(*text, list.fields());
}

void targets_field(Writer& list, const std::vector<core::NotifyTarget>& targets) {
  JsonText& out = list.out();
  out.key("to").open_list();
  for (const core::NotifyTarget& target : targets) out.exact(to_string(target));
  out.close_list();
}
void targets_field(Reader& list, std::vector<core::NotifyTarget>& targets) {
  for (const std::string& text : list.fields().exacts("to")) {
    Result<core::NotifyTarget> target = core::parse_notify(text);
    list.check("to", target.ok(), "a list of targets");
    if (target) targets.push_back(*std::move(target));
  }
  list.check("to", targets.size() <= core::kMaxNotify, "at most 8 targets");
}

}  // namespace

void fields_of(auto& list, Is<core::Detached> auto& detached) {
  if (list.owner() == Owner::kSaid) {
    list.opt("environment", detached.environment);
    list.opt("script", detached.script);
    list.opt("environment_bytes", detached.environment_bytes);
    list.opt("script_bytes", detached.script_bytes);
    list.must("gid", detached.gid);
    list.put("groups", detached.groups);
  }
  list.must("umask", detached.umask);
  list.check("umask", detached.umask <= 0777, "at most 511 (0777)");
  limits_field(list, detached.limits);
  list.opt("log", exact(detached.log));
  list.opt("err", exact(detached.err));
  list.opt("tty", detached.tty);
  list.opt("visible_by_index", detached.visible_by_index);
}

void fields_of(auto& list, Is<core::NotifySpec> auto& notify) {
  targets_field(list, notify.to);
  list.opt("on", notify.on);
  list.opt("none", notify.none);
}

void terms_fields(auto& list, Is<JobSpec> auto& spec) {
  list.opt("time_s", spec.time_s);
  list.opt("priority", spec.priority);
  check_priority(list, spec.priority);
  list.opt("after", each("a job to come after", spec.after));
  list.opt("array", spec.array);
  list.opt("retries", spec.retries);
  list.check("retries", spec.retries <= kMaxRetries, "at most 1000");
  list.opt("retry_gpu_pct", spec.retry_gpu_pct);
  const std::uint32_t pct = spec.retry_gpu_pct.value_or(kMaxRetryPct);
  list.check("retry_gpu_pct", pct > 100 && pct <= kMaxRetryPct, "more than 100 and at most 10000");
  list.opt("requeue", spec.requeue);
  list.opt("held", spec.held);
  list.opt("preemptible", spec.preemptible);
  list.opt("idle_s", spec.idle_s);
  list.check("idle_s", spec.idle_s.value_or(0) <= kMaxIdleS, "at most 3153600000");
  list.opt("no_preempt", spec.no_preempt);
  list.opt("shed", spec.shed);
  list.opt("begin", spec.begin);
  list.opt("deadline", spec.deadline);
}

void fields_of(auto& list, Is<JobSpec> auto& spec) {
  list.must("name", exact(spec.name));
  list.put("command", exact(spec.command));
  list.put("cwd", exact(spec.folder));
  if (list.owner() == Owner::kSaid) {
    list.opt("command_content", spec.command_content);
    list.opt("command_bytes", spec.command_bytes);
    list.must("uid", spec.uid);
    list.must("user", exact(spec.user));
  }
  list.must("request", object("the request", spec.request));
  terms_fields(list, spec);
  list.opt("labels", spec.labels);
  list.opt("notify", object("notify", spec.notify));
  if (list.owner() == Owner::kSaid) {
    list.opt("key", spec.key);
    list.opt("trial", object("the trial", spec.trial));
  }
  list.opt("detached", object("the detached job", spec.detached));
}
template void fields_of(Writer& list, const JobSpec& spec);
template void fields_of(Reader& list, JobSpec& spec);

}  // namespace mete::wire
