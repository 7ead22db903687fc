// SPDX-License-Identifier: Apache-2.0
// See autoscale.h.
#include "simulate/autoscale.h"

#include "base/text.h"
#include "simulate/csv.h"

namespace mete::simulate {

namespace {

constexpr std::int64_t kMostSeconds = 100'000'000;

}  // namespace

Result<std::vector<double>> parse_in_flight(std::string_view text, const std::string& path) {
  Result<Csv> csv = Csv::open(text, path);
  if (!csv) return csv.error();
  const Result<std::size_t> time = csv->column("t_s");
  if (!time) return time.error();
  const Result<std::size_t> load = csv->column("in_flight");
  if (!load) return load.error();
  std::vector<double> in_flight;
  for (;;) {
    const Result<bool> more = csv->next();
    if (!more) return more.error();
    if (!*more) break;
    const Result<std::int64_t> second = csv->number(*time, kMostSeconds);
    if (!second) return second.error();
    if (static_cast<std::size_t>(*second) != in_flight.size())
      return csv
          ->error("t_s is " + std::to_string(*second) + ", and " +
                  std::to_string(in_flight.size()) + " is next")
          .with_hint("write one line for each second, from 0 on");
    const Result<base::Milli> number = base::parse_milli(base::trim(csv->field(*load)));
    if (!number || number->whole > 1'000'000'000)
      return csv->error("in_flight must be a number from 0, not " + base::quote(csv->field(*load)));
    in_flight.push_back(static_cast<double>(number->whole * 1000 + number->thousandths) / 1000);
  }
  if (in_flight.empty())
    return csv->error("there is no second").with_hint("the first line after the names is 0,0");
  return in_flight;
}

std::vector<core::service::Autoscaler::Tick> simulate_autoscaling(
    const core::service::Autoscaling& rules, const std::vector<double>& in_flight) {
  core::service::Autoscaler scaler(rules);
  std::vector<core::service::Autoscaler::Tick> ticks;
  for (std::size_t i = 0; i < in_flight.size(); ++i) {
    const auto t_s = static_cast<std::int64_t>(i);
    scaler.sample(t_s, in_flight[i]);
    if (t_s > 0 && t_s % core::service::kTickS == 0)
      if (const auto tick = scaler.tick(t_s)) ticks.push_back(*tick);
  }
  return ticks;
}

}  // namespace mete::simulate
