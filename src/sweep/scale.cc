// SPDX-License-Identifier: Apache-2.0
// See scale.h. Parts are computed from halves of the values, so that a range from -1e308 to 1e308
// does not overflow. Ticks are multiples of 1, 2 or 5 times a power of ten; on a logarithmic axis
// powers of ten, with 2 and 5 between them if there are few.
#include "sweep/scale.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "sweep/markup.h"

namespace mete::sweep {

using core::sweep::Value;

Scale Scale::of_numbers(double low, double high, bool log) {
  Scale scale;
  scale.log_ = log && low > 0;
  if (!(low < high)) {  // one value: in the middle
    const double room = scale.log_ ? 0 : std::max(std::abs(low) * 0.1, 1e-9);
    low = scale.log_ ? low / 2 : low - (low == 0 ? 1 : room);
    high = scale.log_ ? high * 2 : high + (high == 0 ? 1 : room);
  }
  scale.low_ = low;
  scale.high_ = high;
  return scale;
}

Scale Scale::of_counts(double low, double high) {
  Scale scale = of_numbers(low, std::max(high, low + 1), false);
  scale.whole_ = true;
  return scale;
}

Scale Scale::of_names(std::vector<std::string> names) {
  Scale scale;
  scale.high_ = static_cast<double>(std::max<std::size_t>(1, names.size()));
  scale.names_ = std::move(names);
  return scale;
}

Scale Scale::of_metric(std::vector<double> values, bool maximize, double reach) {
  if (values.empty()) return of_numbers(0, 1, false);
  std::sort(values.begin(), values.end());
  // From each end, the value after a quarter or a twentieth of the list.
  const auto low_at = [&](std::size_t part) { return values[values.size() / part]; };
  const auto high_at = [&](std::size_t part) {
    return values[values.size() - 1 - values.size() / part];
  };
  const bool log = values.front() > 0 && high_at(20) / low_at(20) >= 100;
  const auto to = [log](double value) { return log ? std::log(value) : value; };
  const auto back = [log](double value) { return log ? std::exp(value) : value; };
  double low = to(values.front());
  double high = to(values.back());
  reach *= to(high_at(4)) - to(low_at(4));
  if (reach > 0 && std::isfinite(reach)) {
    if (maximize)
      low = std::max(low, to(low_at(4)) - reach);
    else
      high = std::min(high, to(high_at(4)) + reach);
  }
  const double room = (high - low) * 0.04;
  if (room > 0 && std::isfinite(room)) {
    // A metric that is never negative gets no negative end.
    low = !log && low >= 0 ? std::max(0.0, low - room) : low - room;
    high += room;
  }
  return of_numbers(std::max(back(low), log ? 1e-307 : -1e308), std::min(back(high), 1e308), log);
}

double Scale::part(double value) const {
  if (!(value > low_)) return 0;
  if (value >= high_) return 1;
  if (log_) return (std::log(value) - std::log(low_)) / (std::log(high_) - std::log(low_));
  return (value / 2 - low_ / 2) / (high_ / 2 - low_ / 2);
}

double Scale::value(double part) const {
  if (log_) return std::exp(std::log(low_) * (1 - part) + std::log(high_) * part);
  return low_ * (1 - part) + high_ * part;
}

std::vector<Tick> Scale::linear_ticks(std::size_t most) const {
  const double span = high_ - low_;
  const double rough = span / static_cast<double>(most);
  if (!std::isfinite(rough) || !(rough > 0) || rough < std::max(std::abs(low_), high_) * 1e-13)
    return {{0, number_text(low_)}, {1, number_text(high_)}};
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0})
    if (power * factor >= rough) {
      step = power * factor;
      break;
    }
  if (whole_) step = std::max(1.0, step);
  const double widest = std::max(std::abs(low_), std::abs(high_));
  const int digits = static_cast<int>(std::ceil(std::log10(widest / step))) + 1;
  const double first = std::ceil(low_ / step - 1e-9);
  std::vector<Tick> ticks;
  for (std::size_t i = 0; i <= most + 1; ++i) {
    const double at = (first + static_cast<double>(i)) * step;
    if (at > high_ + step * 1e-9) break;
    ticks.push_back({part(at), number_text(at, digits)});
  }
  return ticks;
}

std::vector<Tick> Scale::log_ticks(std::size_t most) const {
  const int first = static_cast<int>(std::floor(std::log10(low_)));
  const int last = static_cast<int>(std::ceil(std::log10(high_)));
  const int decades = std::max(1, last - first);
  const int every = (decades + static_cast<int>(most) - 1) / static_cast<int>(most);
  std::vector<Tick> ticks;
  const auto add = [&](double at) {
    if (at >= low_ * (1 - 1e-9) && at <= high_ * (1 + 1e-9))
      ticks.push_back({part(at), number_text(at, 3)});
  };
  for (int power = first; power <= last; power += every) {
    const double decade = std::pow(10, power);
    add(decade);
    if (every == 1 && decades * 3 <= static_cast<int>(most) + 3) {
      add(2 * decade);
      add(5 * decade);
    }
  }
  if (ticks.size() < 2) return {{0, number_text(low_, 3)}, {1, number_text(high_, 3)}};
  return ticks;
}

std::vector<Tick> Scale::ticks(std::size_t most) const {
  most = std::max<std::size_t>(2, most);
  if (names_.empty()) return log_ ? log_ticks(most) : linear_ticks(most);
  std::vector<Tick> ticks;
  const std::size_t every = (names_.size() + most - 1) / most;
  for (std::size_t i = 0; i < names_.size(); i += every)
    ticks.push_back({part(static_cast<double>(i) + 0.5), names_[i]});
  return ticks;
}

namespace {

bool is_number(const Value& value) {
  return (value.kind == Value::Kind::kInteger || value.kind == Value::Kind::kReal) &&
         std::isfinite(value.number);
}

}  // namespace

const Value* ParameterScale::find(const wire::SweepDocument::Trial& trial) const {
  if (hint_ < trial.params.size() && trial.params[hint_].first == name_)
    return &trial.params[hint_].second;
  for (const auto& [name, value] : trial.params)
    if (name == name_) return &value;
  return nullptr;
}

ParameterScale::ParameterScale(const wire::SweepDocument& sweep, std::size_t parameter)
    : name_(sweep.space[parameter].name), hint_(parameter) {
  const wire::SweepDocument::Parameter& of = sweep.space[parameter];
  std::vector<Value> values = of.values;
  std::set<std::string, std::less<>> known;
  std::set<std::string, std::less<>> used;
  for (const Value& value : values) known.insert(value.text);
  std::optional<double> low = of.min;
  std::optional<double> high = of.max;
  for (const wire::SweepDocument::Trial& trial : sweep.trials) {
    const Value* const value = find(trial);
    if (value == nullptr) continue;
    if (used.size() < 1000) used.insert(value->text);
    if (!of.values.empty()) {  // a value that the list has lost, or that was edited by hand
      if (known.insert(value->text).second) values.push_back(*value);
    } else if (is_number(*value)) {
      low = std::min(low.value_or(value->number), value->number);
      high = std::max(high.value_or(value->number), value->number);
    }
  }
  used_ = used.size();
  if (of.values.empty()) {
    const bool usable = low && high && std::isfinite(*low) && std::isfinite(*high);
    scale_ = Scale::of_numbers(usable ? *low : 0, usable ? *high : 1, of.log);
    return;
  }
  if (std::all_of(values.begin(), values.end(), is_number))
    std::stable_sort(values.begin(), values.end(),
                     [](const Value& a, const Value& b) { return a.number < b.number; });
  std::vector<std::string> names;
  for (const Value& value : values) {
    places_.emplace(value.text, names.size());
    names.push_back(value.text);
  }
  scale_ = Scale::of_names(std::move(names));
}

std::optional<std::size_t> ParameterScale::place(const wire::SweepDocument::Trial& trial) const {
  const Value* const value = find(trial);
  if (value == nullptr) return std::nullopt;
  const auto found = places_.find(value->text);
  if (found == places_.end()) return std::nullopt;
  return found->second;
}

std::optional<double> ParameterScale::part(const wire::SweepDocument::Trial& trial) const {
  if (listed()) {
    const std::optional<std::size_t> at = place(trial);
    if (!at) return std::nullopt;
    return scale_.part(static_cast<double>(*at) + 0.5);
  }
  const Value* const value = find(trial);
  if (value == nullptr || !is_number(*value)) return std::nullopt;
  return scale_.part(value->number);
}

}  // namespace mete::sweep
