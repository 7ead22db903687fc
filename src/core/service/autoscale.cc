// SPDX-License-Identifier: Apache-2.0
// See autoscale.h. With c replicas wanted and avg the mean of the samples of the window:
//   raw = avg / target; rec = ceil(raw), but c while raw is within the tolerances of c
//   rec is at most a factor away from c, but may always go one step; then it is cut to min..max
// Each rec is remembered. A smaller one than c counts once no larger one was recommended for the
// period of scaling down, a larger one once no smaller one was for the period of scaling up; until
// the first period is over, c stays. Periods and windows include their last instant.
#include "core/service/autoscale.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace mete::core::service {

namespace {

Error wrong(const std::string& key, const std::string& what, const std::string& hint) {
  return Error::invalid(key + " " + what).with_hint(hint);
}

Result<void> check_period(const std::string& key, std::int64_t seconds) {
  if (seconds >= 0 && seconds <= kMaxPeriodS) return {};
  return wrong(key, "is " + std::to_string(seconds) + " s", "write 0s to 24h, such as 5m");
}

Result<void> check_tolerance(const std::string& key, double value) {
  if (value >= 0 && value < 1) return {};
  return wrong(key, "is no part of 1", "write 0 to 0.99, such as 0.05");
}

}  // namespace

Result<void> check(const Autoscaling& rules) {
  if (rules.max < 1 || rules.max > kMaxReplicas)
    return wrong("max_replicas", "is " + std::to_string(rules.max),
                 "write 1 to " + std::to_string(kMaxReplicas));
  if (rules.min > rules.max)
    return wrong("min_replicas",
                 "is " + std::to_string(rules.min) + ", more than max_replicas, " +
                     std::to_string(rules.max),
                 "write replicas: " + std::to_string(rules.max) + ".." + std::to_string(rules.min) +
                     ", or raise max_replicas");
  if (rules.init && (*rules.init < rules.min || *rules.init > rules.max))
    return wrong("init_replicas", "is " + std::to_string(*rules.init),
                 "write " + std::to_string(rules.min) + " to " + std::to_string(rules.max) +
                     ": between min_replicas and max_replicas");
  if (!(rules.target_in_flight > 0) || !std::isfinite(rules.target_in_flight))
    return wrong("target_in_flight", "must be above 0", "leave it out: it is the concurrency");
  if (rules.window_s < kTickS || rules.window_s > kMaxPeriodS || rules.window_s % kTickS != 0)
    return wrong("window", "is " + std::to_string(rules.window_s) + " s",
                 "write a multiple of 10s, such as 60s");
  if (Result<void> r = check_period("downscale_stabilization_period", rules.down_period_s); !r)
    return r;
  if (Result<void> r = check_period("upscale_stabilization_period", rules.up_period_s); !r)
    return r;
  if (!(rules.max_down >= 0 && rules.max_down <= 1))
    return wrong("max_downscale_factor", "is no part of 1", "write 0 to 1, such as 0.75");
  if (!(rules.max_up >= 1) || !std::isfinite(rules.max_up))
    return wrong("max_upscale_factor", "is below 1", "write 1 or more, such as 1.5");
  if (Result<void> r = check_tolerance("downscale_tolerance", rules.down_tolerance); !r) return r;
  return check_tolerance("upscale_tolerance", rules.up_tolerance);
}

Autoscaler::Autoscaler(const Autoscaling& rules) : rules_(rules) {
  parts_.replicas = rules.init.value_or(rules.min);
}

Autoscaler::Autoscaler(const Autoscaling& rules, Parts parts)
    : rules_(rules), parts_(std::move(parts)) {
  set_rules(rules);
}

void Autoscaler::set_rules(const Autoscaling& rules) {
  rules_ = rules;
  parts_.replicas = std::clamp(parts_.replicas, rules.min, rules.max);
}

void Autoscaler::sample(std::int64_t t_s, double in_flight) {
  parts_.samples.push_back({t_s, in_flight});
  if (parts_.replicas == 0 && in_flight > 0) {
    parts_.replicas = 1;
    parts_.remembered.push_back({t_s, 1});
  }
  forget(t_s);
}

std::optional<Autoscaler::Tick> Autoscaler::tick(std::int64_t t_s) {
  forget(t_s);
  if (parts_.samples.empty()) return std::nullopt;
  if (!parts_.first_tick_s) parts_.first_tick_s = t_s;
  Tick tick;
  tick.t_s = t_s;
  double sum = 0;
  for (const Sample& sample : parts_.samples) sum += sample.in_flight;
  tick.avg = sum / static_cast<double>(parts_.samples.size());
  tick.raw = tick.avg / rules_.target_in_flight;
  tick.recommended = recommend(tick.raw);
  parts_.remembered.push_back({t_s, tick.recommended});
  parts_.replicas = after_periods(t_s, tick.recommended);
  tick.replicas = parts_.replicas;
  return tick;
}

std::uint32_t Autoscaler::recommend(double raw) const {
  const double c = parts_.replicas;
  double rec = std::ceil(raw);
  if (c * (1 - rules_.down_tolerance) < raw && raw < c) rec = c;
  if (c < raw && raw < c * (1 + rules_.up_tolerance)) rec = c;
  rec = std::max(rec, std::min(c - 1, std::ceil(c * rules_.max_down)));
  rec = std::min(rec, std::max(c + 1, std::ceil(c * rules_.max_up)));
  rec = std::clamp(rec, static_cast<double>(rules_.min), static_cast<double>(rules_.max));
  return static_cast<std::uint32_t>(rec);
}

std::uint32_t Autoscaler::after_periods(std::int64_t t_s, std::uint32_t recommended) const {
  const std::uint32_t c = parts_.replicas;
  std::uint32_t least = recommended;  // within the period
  std::uint32_t most = recommended;
  const bool down = recommended < c;
  const std::int64_t period = down ? rules_.down_period_s : rules_.up_period_s;
  if (recommended == c || t_s <= *parts_.first_tick_s + period) return c;
  for (const Remembered& one : parts_.remembered) {
    if (t_s - one.t_s > period) continue;
    least = std::min(least, one.replicas);
    most = std::max(most, one.replicas);
  }
  return down ? std::max(recommended, std::min(c, most))
              : std::min(recommended, std::max(c, least));
}

void Autoscaler::forget(std::int64_t t_s) {
  std::deque<Sample>& samples = parts_.samples;
  while (!samples.empty() && samples.front().t_s <= t_s - rules_.window_s) samples.pop_front();
  const std::int64_t period = std::max(rules_.down_period_s, rules_.up_period_s);
  std::deque<Remembered>& remembered = parts_.remembered;
  while (!remembered.empty() && t_s - remembered.front().t_s > period) remembered.pop_front();
}

}  // namespace mete::core::service
