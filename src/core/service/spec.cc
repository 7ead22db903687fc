// SPDX-License-Identifier: Apache-2.0
// See spec.h.
#include "core/service/spec.h"

#include <algorithm>

#include "base/text.h"

namespace mete::core::service {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

Result<void> check_probe(const std::string& key, const Probe& probe) {
  if (probe.kind == Probe::Kind::kHttp && !probe.path.starts_with('/'))
    return Error::invalid(key + ": http is " + base::quote(probe.path) + ", which is no path")
        .with_hint("write " + key + ": {http: /health}");
  if (probe.kind == Probe::Kind::kExec && probe.command.empty())
    return Error::invalid(key + ": exec has no command")
        .with_hint("write " + key + ": {exec: [test, -f, /tmp/ready]}");
  return {};
}

Result<void> check_seconds(const std::string& key, std::int64_t seconds) {
  if (seconds >= 1 && seconds <= kMaxPeriodS) return {};
  return Error::invalid(key + " is " + std::to_string(seconds) + " s")
      .with_hint("write 1s to 24h, such as " + key + ": 30s");
}

}  // namespace

Result<void> check_service_name(std::string_view name) {
  const bool letters = std::all_of(name.begin(), name.end(),
                                   [](char c) { return is_letter(c) || is_digit(c) || c == '-'; });
  if (name.empty() || name.size() > kMaxName || !letters || !is_letter(name.front()) ||
      name.back() == '-')
    return Error::invalid(base::quote(name.substr(0, 80)) + " is no name of a service")
        .with_hint("use letters, digits and hyphens, beginning with a letter: at most " +
                   std::to_string(kMaxName));
  if (name == "v1")
    return Error::invalid(base::quote(name) + " is no name of a service")
        .with_evidence("/v1/ is the address of all models")
        .with_hint("give it another name");
  return {};
}

std::optional<std::int64_t> ServiceSpec::parks_after_s() const {
  if (parks_never || resident) return std::nullopt;
  if (park_after_s) return park_after_s;
  return scaling.min == 0 ? std::optional(kParkAfterS) : std::nullopt;
}

Result<void> check(const ServiceSpec& spec) {
  if (Result<void> r = check_service_name(spec.name); !r) return r;
  if (spec.models.size() > kMaxModels)
    return Error::invalid("models has " + std::to_string(spec.models.size()) + " names")
        .with_hint("a service has at most " + std::to_string(kMaxModels));
  std::vector<std::string> models = spec.models;
  std::sort(models.begin(), models.end());
  if (const auto twice = std::adjacent_find(models.begin(), models.end()); twice != models.end())
    return Error::invalid("models has " + base::quote(*twice) + " twice").with_hint("say it once");
  if (std::find(models.begin(), models.end(), "") != models.end())
    return Error::invalid("models has an empty name").with_hint("leave it out");
  if (Result<void> r = check_probe("ready", spec.ready); !r) return r;
  if (spec.live)
    if (Result<void> r = check_probe("live", *spec.live); !r) return r;
  if (spec.concurrency < 1 || spec.concurrency > kMaxConcurrency)
    return Error::invalid("concurrency is " + std::to_string(spec.concurrency))
        .with_hint("write 1 to " + std::to_string(kMaxConcurrency) +
                   ": how many requests a replica works on at a time");
  if (spec.queue > kMaxConcurrency)
    return Error::invalid("queue is " + std::to_string(spec.queue))
        .with_hint("write 0 to " + std::to_string(kMaxConcurrency));
  if (Result<void> r = check_seconds("hold", spec.hold_s); !r) return r;
  if (Result<void> r = check_seconds("max_wait", spec.max_wait_s); !r) return r;
  if (Result<void> r = check_seconds("start_timeout", spec.start_timeout_s); !r) return r;
  if (spec.park_after_s)
    if (Result<void> r = check_seconds("park_after", *spec.park_after_s); !r) return r;
  if (spec.resident && spec.park_after_s)
    return Error::invalid("park_after and resident: always contradict each other")
        .with_hint("leave one out");
  if (spec.resident && spec.scaling.max > 0 && spec.scaling.min == 0)
    return Error::invalid("resident: always needs a replica that is always there")
        .with_evidence("min_replicas is 0")
        .with_hint("write replicas: 1");
  for (const std::string& pattern : spec.no_wake)
    if (!pattern.starts_with('/'))
      return Error::invalid("no_wake has " + base::quote(pattern) + ", which is no path")
          .with_hint("write no_wake: [/metrics, /static/*]");
  return check(spec.scaling);
}

}  // namespace mete::core::service
