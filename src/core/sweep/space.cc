// SPDX-License-Identifier: Apache-2.0
// See space.h. make() reads conditions again with the names of the space, so that an unknown name
// is found with its place, and `a-b` means what the space has. Points are then filled in the order
// of `order_`, where a parameter comes after all that its condition names: one pass settles them.
// Grid points are computed from their number alone, as digits of a number with mixed bases.
#include "core/sweep/space.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"
#include "base/text.h"

namespace mete::core::sweep {

namespace {

bool is_identifier(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '-';
  });
}

std::string words_of(const Parameter& parameter) {
  return "parameter " + base::quote(parameter.name);
}

Result<void> check_names(const std::vector<Parameter>& parameters) {
  if (parameters.empty()) return Error::invalid("the space has no parameters");
  if (parameters.size() > kMaxParameters)
    return Error::invalid("the space has too many parameters")
        .with_evidence(std::to_string(parameters.size()) + "; at most " +
                       std::to_string(kMaxParameters));
  std::vector<std::string_view> names;
  for (const Parameter& parameter : parameters) {
    if (parameter.name.size() > kMaxParameterName)
      return Error::invalid("the name of a parameter is too long")
          .with_evidence(base::quote(parameter.name) + " has more than " +
                         std::to_string(kMaxParameterName) + " characters");
    if (!is_identifier(parameter.name))
      return Error::invalid(base::quote(parameter.name) + " cannot be the name of a parameter")
          .with_hint("letters, digits, _ and -, and a letter or _ first");
    names.push_back(parameter.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    return Error::invalid("two parameters have the name " + base::quote(*twice));
  return {};
}

Result<void> check_values(const std::vector<Value>& values) {
  if (values.empty()) return Error::invalid("it has no values");
  if (values.size() > kMaxValues)
    return Error::invalid("it has too many values")
        .with_evidence(std::to_string(values.size()) + "; at most " + std::to_string(kMaxValues));
  for (const Value& value : values) {
    if (value.text.size() > kMaxValueText)
      return Error::invalid("a value is too long")
          .with_evidence(base::quote(value.text) + " has " + std::to_string(value.text.size()) +
                         " bytes; at most " + std::to_string(kMaxValueText));
    if (value.text.find('\0') != std::string::npos)
      return Error::invalid("a value has a NUL byte").with_evidence(base::quote(value.text));
    if (value.kind != Value::Kind::kText && !std::isfinite(value.number))
      return Error::invalid("a value is not finite").with_evidence(base::quote(value.text));
  }
  return {};
}

bool before(const Value& a, const Value& b) {
  return a.text != b.text ? a.text < b.text : a.kind < b.kind;
}

// The condition as the space understands it.
Result<void> read_again(std::optional<Expression>& condition,
                        const std::vector<std::string>& names) {
  if (!condition) return {};
  Result<Expression> again = Expression::parse(condition->text(), names);
  if (!again) return std::move(again).error();
  condition = *std::move(again);
  return {};
}

// "a needs b, b needs a". `needs`: for each parameter one that its condition names, and that
// cannot be placed either; from `start` they lead into a circle.
std::string words_of_circle(const std::vector<Parameter>& parameters,
                            const std::vector<std::size_t>& needs, std::size_t start) {
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 0; i < parameters.size(); ++i) start = needs[start];  // into the circle
  std::string words;
  std::size_t at = start, length = 0;
  do {
    if (length < kShown)
      words +=
          (length > 0 ? ", " : "") + parameters[at].name + " needs " + parameters[needs[at]].name;
    at = needs[at];
    ++length;
  } while (at != start);
  return length > kShown ? words + ", … (" + std::to_string(length) + " parameters)" : words;
}

}  // namespace

Result<Space> Space::make(std::vector<Parameter> parameters, std::optional<Expression> keep) {
  if (Result<void> named = check_names(parameters); !named) return std::move(named).error();
  Space space;
  space.parameters_ = std::move(parameters);
  space.keep_ = std::move(keep);
  for (const Parameter& parameter : space.parameters_)
    if (Result<void> added = space.add_axis(parameter); !added)
      return std::move(added).error().within(words_of(parameter));
  if (Result<void> read = space.read_conditions(); !read) return std::move(read).error();
  if (Result<void> ordered = space.add_order(); !ordered) return std::move(ordered).error();
  for (std::size_t i = 0; i < space.parameters_.size(); ++i)
    space.by_name_.emplace(space.parameters_[i].name, i);
  space.points_ = space.count_points();
  return space;
}

std::optional<std::uint64_t> Space::count_points() const {
  const std::optional<std::uint64_t> all = size();
  if (!all || *all > kMaxCounted || condition_bytes_ == 0) return all;
  std::uint64_t count = 0;
  for (std::uint64_t i = 0; i < *all; ++i)
    if (const std::optional<Point> point = grid(i); point && keeps(*point)) ++count;
  return count;
}

Result<void> Space::add_axis(const Parameter& parameter) {
  Axis axis;
  if (const Range* range = std::get_if<Range>(&parameter.domain)) {
    Result<RangeScale> scale = RangeScale::make(*range);
    if (!scale) return std::move(scale).error();
    axis.scale = *std::move(scale);
  } else {
    const std::vector<Value>& values = std::get<std::vector<Value>>(parameter.domain);
    if (Result<void> checked = check_values(values); !checked) return checked;
    for (std::uint32_t i = 0; i < values.size(); ++i) axis.sorted.push_back(i);
    std::sort(axis.sorted.begin(), axis.sorted.end(),
              [&](std::uint32_t a, std::uint32_t b) { return before(values[a], values[b]); });
    const auto twice = std::adjacent_find(
        axis.sorted.begin(), axis.sorted.end(),
        [&](std::uint32_t a, std::uint32_t b) { return values[a] == values[b]; });
    if (twice != axis.sorted.end())
      return Error::invalid("a value is there twice")
          .with_evidence(base::quote(values[*twice].text));
  }
  axes_.push_back(std::move(axis));
  return {};
}

Result<void> Space::read_conditions() {
  const std::vector<std::string> all = names();
  for (Parameter& parameter : parameters_)
    if (Result<void> read = read_again(parameter.when, all); !read)
      return std::move(read).error().within("condition of " + words_of(parameter));
  if (Result<void> read = read_again(keep_, all); !read)
    return std::move(read).error().within("keep");
  if (keep_) condition_bytes_ += keep_->text().size();
  for (const Parameter& parameter : parameters_)
    if (parameter.when) condition_bytes_ += parameter.when->text().size();
  if (condition_bytes_ > kMaxConditions)
    return Error::invalid("the conditions of the space are too long")
        .with_evidence(std::to_string(condition_bytes_) + " characters; at most " +
                       std::to_string(kMaxConditions));
  return {};
}

Result<void> Space::add_order() {
  const std::size_t size = parameters_.size();
  std::vector<std::vector<std::size_t>> parents(size);
  const std::vector<std::string> all = names();
  for (std::size_t i = 0; i < size; ++i)
    if (parameters_[i].when)
      for (const std::string& name : parameters_[i].when->names())
        parents[i].push_back(
            static_cast<std::size_t>(std::find(all.begin(), all.end(), name) - all.begin()));

  std::vector<bool> placed(size, false);
  while (order_.size() < size) {
    const std::size_t before_pass = order_.size();
    std::vector<std::size_t> needs(size, 0);
    std::size_t waiting = 0;
    for (std::size_t i = 0; i < size; ++i) {
      if (placed[i]) continue;
      const auto missing = std::find_if(parents[i].begin(), parents[i].end(),
                                        [&](std::size_t parent) { return !placed[parent]; });
      if (missing != parents[i].end()) {
        needs[i] = *missing;
        waiting = i;
        continue;
      }
      placed[i] = true;
      order_.push_back(i);
    }
    if (order_.size() == before_pass)
      return Error::invalid("the conditions of the parameters form a circle")
          .with_evidence(words_of_circle(parameters_, needs, waiting));
  }
  return {};
}

std::vector<std::string> Space::names() const {
  std::vector<std::string> names;
  names.reserve(parameters_.size());
  for (const Parameter& parameter : parameters_) names.push_back(parameter.name);
  return names;
}

std::optional<std::uint64_t> Space::values_of(std::size_t parameter) const {
  const Axis& axis = axes_[parameter];
  return axis.scale ? axis.scale->count() : axis.sorted.size();
}

std::optional<std::uint64_t> Space::size() const {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 63;
  std::uint64_t size = 1;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    const std::optional<std::uint64_t> values = values_of(i);
    if (!values || *values > kMost / size) return std::nullopt;
    size *= *values;
  }
  return size;
}

std::optional<Value> Space::find(std::string_view name, const Point& point) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? std::nullopt : point[found->second];
}

bool Space::in_use(std::size_t parameter, const Point& point) const {
  const std::optional<Expression>& when = parameters_[parameter].when;
  return !when || when->holds([&](std::string_view name) { return find(name, point); });
}

Point Space::at(std::span<const double> unit) const {
  METE_ASSERT(unit.size() == parameters_.size());
  Point point(parameters_.size());
  for (const std::size_t i : order_)
    if (in_use(i, point)) point[i] = value_at(i, unit[i]);
  return point;
}

std::optional<Point> Space::grid(std::uint64_t index) const {
  const std::optional<std::uint64_t> points = size();
  if (!points || index >= *points) return std::nullopt;
  std::vector<std::uint64_t> digits(parameters_.size());
  for (std::size_t i = digits.size(); i-- > 0;) {
    const std::uint64_t values = *values_of(i);
    digits[i] = index % values;
    index /= values;
  }
  Point point(parameters_.size());
  for (const std::size_t i : order_) {
    if (in_use(i, point))
      point[i] = value_of(i, digits[i]);
    else if (digits[i] != 0)
      return std::nullopt;
  }
  return point;
}

Value Space::value_at(std::size_t parameter, double unit) const {
  if (const std::optional<RangeScale>& scale = axes_[parameter].scale) return scale->value_at(unit);
  const auto& values = std::get<std::vector<Value>>(parameters_[parameter].domain);
  return values[part_of(unit, values.size())];
}

double Space::unit_of(std::size_t parameter, const Value& value) const {
  const Axis& axis = axes_[parameter];
  if (axis.scale) return axis.scale->unit_of(value.number);
  const auto& values = std::get<std::vector<Value>>(parameters_[parameter].domain);
  const auto found = std::lower_bound(
      axis.sorted.begin(), axis.sorted.end(), value,
      [&](std::uint32_t i, const Value& wanted) { return before(values[i], wanted); });
  if (found == axis.sorted.end() || values[*found] != value) return 0.5;
  return middle_of(*found, values.size());
}

Value Space::value_of(std::size_t parameter, std::uint64_t index) const {
  if (const std::optional<RangeScale>& scale = axes_[parameter].scale)
    return scale->value_of(index);
  return std::get<std::vector<Value>>(parameters_[parameter].domain)[index];
}

Point Space::settled(Point point) const {
  METE_ASSERT(point.size() == parameters_.size());
  for (const std::size_t i : order_)
    if (!in_use(i, point)) point[i].reset();
  return point;
}

bool Space::keeps(const Point& point) const {
  return !keep_ || keep_->holds([&](std::string_view name) { return find(name, point); });
}

std::vector<std::pair<std::string, Value>> named(const Space& space, const Point& point) {
  std::vector<std::pair<std::string, Value>> named;
  for (std::size_t i = 0; i < point.size(); ++i)
    if (point[i]) named.emplace_back(space.parameters()[i].name, *point[i]);
  return named;
}

}  // namespace mete::core::sweep
