// SPDX-License-Identifier: Apache-2.0
// The space of a sweep: parameters with their values or ranges, conditions between them, and what
// of it is kept. Text (files, options) is read elsewhere; here are the values, what is checked of
// them, and the way from numbers in [0, 1) to points, on which all samplers are built.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "core/sweep/expression.h"
#include "core/sweep/range.h"
#include "core/sweep/value.h"

namespace mete::core::sweep {

inline constexpr std::size_t kMaxParameters = 256;
inline constexpr std::size_t kMaxValues = 100'000;  // of one parameter
inline constexpr std::size_t kMaxValueText = 4'096;
inline constexpr std::size_t kMaxParameterName = 128;
inline constexpr std::size_t kMaxConditions = 16'384;  // characters, of all conditions and `keep`
inline constexpr std::uint64_t kMaxCounted = 10'000;   // points

struct Parameter {
  std::string name;                                // an identifier: [A-Za-z_][A-Za-z0-9_-]*
  std::variant<std::vector<Value>, Range> domain;  // one value: fixed
  std::optional<Expression> when = {};             // in use only where this holds
  bool operator==(const Parameter&) const = default;
};

class Space {
 public:
  Space() = default;
  // Checks everything and puts the parameters into an order in which each comes after those that
  // its condition names; `parameters()` keeps the order given. invalid, with one clear message: no
  // parameters, too many, a name twice or no identifier, no values, a value twice, a range of zero
  // width or with min > max, a log range through or at zero, a step that is not positive (and what
  // else range.h refuses), an integer range without a whole number, a value that is not finite or
  // has a NUL byte, a condition on a missing parameter or in a circle (the evidence names the
  // circle: "a needs b, b needs a"), `keep` on a missing parameter.
  static Result<Space> make(std::vector<Parameter> parameters, std::optional<Expression> keep = {});

  const std::vector<Parameter>& parameters() const { return parameters_; }
  const std::optional<Expression>& keep() const { return keep_; }
  std::vector<std::string> names() const;

  // How many values a parameter has; nullopt: a continuous range.
  std::optional<std::uint64_t> values_of(std::size_t parameter) const;
  // The number of points of the full grid, before conditions and `keep`; nullopt: continuous, or
  // more than 2^63.
  std::optional<std::uint64_t> size() const;
  // The number of points, conditions and `keep` applied: exact for a grid of at most kMaxCounted
  // points, otherwise size().
  std::optional<std::uint64_t> points() const { return points_; }
  // What it costs to make a point: the characters of all conditions.
  std::size_t condition_bytes() const { return condition_bytes_; }

  // The point for one number in [0, 1) per parameter, conditions applied. `keep` is not.
  Point at(std::span<const double> unit) const;
  // The point `index` of the grid, 0 <= index < size(), the last parameter fastest. nullopt: a
  // duplicate, since a parameter that is not in use has only its first value there.
  std::optional<Point> grid(std::uint64_t index) const;
  // The value of a parameter for a number in [0, 1), and back: the middle of what maps to it, in
  // [0, 1). value_at(unit_of(v)) is v, except in a continuous range, where it is near v. A value
  // out of range counts as the nearest one; an unknown listed value gives 0.5.
  Value value_at(std::size_t parameter, double unit) const;
  double unit_of(std::size_t parameter, const Value& value) const;
  // The value `index` of a parameter, 0 <= index < values_of().
  Value value_of(std::size_t parameter, std::uint64_t index) const;
  // Conditions applied to a point: parameters that are not in use lose their value.
  Point settled(Point point) const;
  bool keeps(const Point& point) const;

  bool operator==(const Space& other) const {
    return parameters_ == other.parameters_ && keep_ == other.keep_;
  }

 private:
  // What is computed once of a domain.
  struct Axis {
    std::optional<RangeScale> scale = {};    // of a range
    std::vector<std::uint32_t> sorted = {};  // listed values in the order of their texts
  };

  Result<void> add_axis(const Parameter& parameter);
  Result<void> read_conditions();
  Result<void> add_order();
  bool in_use(std::size_t parameter, const Point& point) const;
  std::optional<Value> find(std::string_view name, const Point& point) const;
  std::optional<std::uint64_t> count_points() const;

  std::vector<Parameter> parameters_;
  std::vector<Axis> axes_;
  std::vector<std::size_t> order_;  // parents of conditions first
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::size_t condition_bytes_ = 0;
  std::optional<std::uint64_t> points_;
  std::optional<Expression> keep_;
};

// {"lr", "0.001"} pairs of the parameters in use, in the order of the space.
std::vector<std::pair<std::string, Value>> named(const Space& space, const Point& point);

}  // namespace mete::core::sweep
