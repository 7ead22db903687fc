// SPDX-License-Identifier: Apache-2.0
// A range of numbers that a parameter may have, and the way between numbers in [0, 1) and its
// values. Every value is computed with +, -, *, / and maths.h, so that it is equal on every
// machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "core/sweep/value.h"

namespace mete::core::sweep {

// The whole numbers of a range are within ±2^53, so that a double has each of them, and at most
// 2^50 of them, so that a number in [0, 1) tells them apart. A log range of them goes up to 2^40.
inline constexpr double kMaxWhole = 9007199254740992.0;
inline constexpr std::uint64_t kMaxWholes = std::uint64_t{1} << 50;
inline constexpr double kMaxLogWhole = 1099511627776.0;

struct Range {
  double min = 0;
  double max = 1;
  bool log = false;      // even in the logarithm
  bool integer = false;  // whole numbers, both ends included
  // min, min + step, … up to max, with a tolerance of step * 1e-9. The values are rounded to the
  // decimals of min and step, so that 0 to 1 by 0.1 has 0.3 and not 0.30000000000000004.
  std::optional<double> step = {};
  bool operator==(const Range&) const = default;
};

class RangeScale {
 public:
  // invalid: a limit that is not finite, min > max, zero width, a log range that is not above zero,
  // a step that is not positive, that is larger than the range, that is lost in rounding, or that
  // is in a log range; whole numbers: none in the range, too many, or a step that is not whole.
  static Result<RangeScale> make(const Range& range);

  // How many values there are; nullopt: continuous.
  std::optional<std::uint64_t> count() const;
  Value value_of(std::uint64_t index) const;  // 0 <= index < count()
  Value value_at(double unit) const;
  // The middle of what value_at() maps to this number, in [0, 1); a number out of range counts as
  // the nearest one.
  double unit_of(double number) const;

 private:
  explicit RangeScale(const Range& range) : range_(range) {}
  Error wrong(const char* what) const;
  Result<void> check() const;
  Result<void> count_whole();
  Result<void> count_steps();

  Range range_;
  std::uint64_t count_ = 0;   // 0: continuous
  double first_ = 0;          // the smallest value of an integer or stepped range
  std::size_t decimals_ = 0;  // of a stepped range
  double low_ = 0;            // a log range: the logarithms of its ends
  double high_ = 0;
};

// `unit` within [0, 1), also if it is NaN.
double in_unit(double unit);
// Which of `count` equal parts of [0, 1) `unit` is in, and the middle of part `index`.
std::uint64_t part_of(double unit, std::uint64_t count);
double middle_of(std::uint64_t index, std::uint64_t count);

}  // namespace mete::core::sweep
