// SPDX-License-Identifier: Apache-2.0
// See range.h. A range with `count_` values divides [0, 1) into as many equal parts. A log range of
// whole numbers goes from min - 0.5 to max + 0.5 on the logarithmic scale, and each number gets
// what rounds to it. The limits of make() keep the rounding errors of all this below half of a
// part, so that value_at(unit_of(v)) is v.
#include "core/sweep/range.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/sweep/maths.h"

namespace mete::core::sweep {

namespace {

constexpr double kBelowOne = 0x1.fffffffffffffp-1;
// A step is at least this part of the largest limit: index * step, its sum with the first value and
// the rounding to decimals then err by less than half a step, and no two values are equal.
constexpr double kLeastStep = 0x1p-48;

// How many decimals the shortest text of a number has: 2 for 0.25, 5 for 1e-05, 0 for 20.
std::size_t decimals_of(double number) {
  char text[32];
  const char* const end =
      std::to_chars(text, text + sizeof text, number, std::chars_format::scientific).ptr;
  const std::string_view all(text, static_cast<std::size_t>(end - text));
  const std::size_t e = all.find('e');
  const std::size_t point = all.find('.');
  const int digits = point == std::string_view::npos ? 0 : static_cast<int>(e - point - 1);
  int exponent = 0;
  const std::size_t begin = e + (all[e + 1] == '+' ? 2 : 1);
  std::from_chars(all.data() + begin, end, exponent);
  return static_cast<std::size_t>(std::max(0, digits - exponent));
}

// The double nearest to `number` with at most `decimals` decimals.
double rounded(double number, std::size_t decimals) {
  char text[800];  // 309 digits before the point, and up to 340 decimals
  const auto [end, error] = std::to_chars(text, text + sizeof text, number,
                                          std::chars_format::fixed, static_cast<int>(decimals));
  if (error != std::errc()) return number;
  double result = number;
  std::from_chars(text, end, result);
  return result;
}

std::string words_of(double number) { return of_real(number).text; }

}  // namespace

double in_unit(double unit) {
  if (!(unit > 0)) return 0;
  return std::min(unit, kBelowOne);
}

std::uint64_t part_of(double unit, std::uint64_t count) {
  const auto part = static_cast<std::uint64_t>(in_unit(unit) * static_cast<double>(count));
  return std::min(part, count - 1);
}

double middle_of(std::uint64_t index, std::uint64_t count) {
  return (static_cast<double>(index) + 0.5) / static_cast<double>(count);
}

Result<RangeScale> RangeScale::make(const Range& range) {
  RangeScale scale(range);
  if (Result<void> checked = scale.check(); !checked) return std::move(checked).error();
  if (range.integer || range.step) {
    Result<void> counted = range.integer ? scale.count_whole() : scale.count_steps();
    if (!counted) return std::move(counted).error();
  }
  if (range.log) {
    const double last = scale.first_ + static_cast<double>(scale.count_) - 1;
    scale.low_ = log_of(range.integer ? scale.first_ - 0.5 : range.min);
    scale.high_ = log_of(range.integer ? last + 0.5 : range.max);
  }
  return scale;
}

Error RangeScale::wrong(const char* what) const {
  std::string evidence = words_of(range_.min) + " to " + words_of(range_.max);
  if (range_.step) evidence += " in steps of " + words_of(*range_.step);
  return Error::invalid(what).with_evidence(std::move(evidence));
}

Result<void> RangeScale::check() const {
  const auto& [min, max, log, integer, step] = range_;
  if (!std::isfinite(min) || !std::isfinite(max))
    return wrong("a limit of the range is not finite");
  if (min > max) return wrong("the minimum of the range is above its maximum");
  if (min == max)
    return wrong("the range has zero width").with_hint("write one value instead of a range");
  if (!std::isfinite(max - min)) return wrong("the range is too wide");
  if (log && min <= 0)
    return wrong("the minimum of a log range is not above zero")
        .with_hint("start above zero, for example at 1e-6");
  if (!step) return {};
  if (log) return wrong("a log range has no step").with_hint("leave out log or step");
  if (!std::isfinite(*step) || *step <= 0) return wrong("the step is not above zero");
  if (integer && *step != std::floor(*step))
    return wrong("the step of a range of whole numbers is not whole");
  return {};
}

Result<void> RangeScale::count_steps() {
  const double step = *range_.step;
  if (step < std::max(std::abs(range_.min), std::abs(range_.max)) * kLeastStep)
    return wrong("the step is too small for numbers of this size");
  count_ = static_cast<std::uint64_t>((range_.max - range_.min) / step + 1e-9) + 1;
  if (count_ == 1) return wrong("the step is larger than the range");
  first_ = range_.min;
  decimals_ = std::max(decimals_of(range_.min), decimals_of(step));
  return {};
}

Result<void> RangeScale::count_whole() {
  if (range_.min < -kMaxWhole || range_.max > kMaxWhole)
    return wrong("a range of whole numbers is within -2^53 and 2^53");
  if (range_.log && range_.max > kMaxLogWhole)
    return wrong("a log range of whole numbers goes up to 2^40");
  if (range_.step && *range_.step > range_.max - range_.min)
    return wrong("the step is larger than the range");
  first_ = std::ceil(range_.min);
  const double last = std::floor(range_.max);
  if (first_ > last) return wrong("no whole number is in the range");
  const auto width = static_cast<std::uint64_t>(last - first_);
  count_ = width / static_cast<std::uint64_t>(range_.step.value_or(1)) + 1;
  if (count_ > kMaxWholes) return wrong("the range has more than 2^50 whole numbers");
  return {};
}

std::optional<std::uint64_t> RangeScale::count() const {
  return count_ > 0 ? std::optional(count_) : std::nullopt;
}

Value RangeScale::value_of(std::uint64_t index) const {
  index = std::min(index, count_ - 1);
  const double value = first_ + static_cast<double>(index) * range_.step.value_or(1);
  if (range_.integer) return of_integer(static_cast<std::int64_t>(value));
  return of_real(std::clamp(rounded(value, decimals_), range_.min, range_.max));
}

Value RangeScale::value_at(double unit) const {
  if (count_ > 0 && !range_.log) return value_of(part_of(unit, count_));
  unit = in_unit(unit);
  if (!range_.log) {
    const double value = range_.min + unit * (range_.max - range_.min);
    return of_real(std::min(value, range_.max));
  }
  const double value = exp_of(low_ + unit * (high_ - low_));
  if (!range_.integer)
    return of_real(unit == 0 ? range_.min : std::clamp(value, range_.min, range_.max));
  const double last = first_ + static_cast<double>(count_) - 1;
  return of_integer(static_cast<std::int64_t>(std::clamp(std::floor(value + 0.5), first_, last)));
}

double RangeScale::unit_of(double number) const {
  if (!(number > range_.min)) number = range_.min;  // also NaN
  number = std::min(number, range_.max);
  if (count_ == 0) {
    const double from = range_.log ? low_ : range_.min;
    const double to = range_.log ? high_ : range_.max;
    if (!(to > from)) return 0.5;
    return in_unit(((range_.log ? log_of(number) : number) - from) / (to - from));
  }
  const double last = static_cast<double>(count_ - 1);
  const double index = std::floor((number - first_) / range_.step.value_or(1) + 0.5);
  const double nearest = std::clamp(index, 0.0, last);
  if (!range_.log) return middle_of(static_cast<std::uint64_t>(nearest), count_);
  const double whole = first_ + nearest;
  const double middle = (log_of(whole - 0.5) + log_of(whole + 0.5)) / 2;
  return in_unit((middle - low_) / (high_ - low_));
}

}  // namespace mete::core::sweep
