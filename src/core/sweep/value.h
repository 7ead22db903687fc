// SPDX-License-Identifier: Apache-2.0
// A value of a parameter, as it reaches the program and as it is compared. Listed values keep the
// text that the user wrote; computed ones have the shortest text that reads back as the number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mete::core::sweep {

struct Value {
  enum class Kind : std::uint8_t { kText, kInteger, kReal, kBool };
  Kind kind = Kind::kText;
  std::string text;   // "1e-3", "adam", "true"
  double number = 0;  // of an integer, a real, or a bool (0, 1)
  // Values are equal if they reach the program as equal words.
  bool operator==(const Value& other) const { return kind == other.kind && text == other.text; }
};

Value of_text(std::string text);  // always kText, also for "3"
Value of_bool(bool value);
Value of_integer(std::int64_t value);
Value of_real(double value);  // finite; shortest text that reads back
// What a word on the command line is: "32" an integer, "1e-3" a real, "true" and "false" a bool,
// everything else (also "nan" and "inf", and "007": its zeros count) a text. The text stays as
// written; a number may have a form that JSON lacks ("+3", ".5").
Value guess(std::string_view word);

// One value for each parameter of a space, in its order; nullopt: the parameter is not in use in
// this set (its condition is false).
using Point = std::vector<std::optional<Value>>;

// For finding equal points: equal points have equal hashes, on every machine.
std::uint64_t hash(const Point& point);

}  // namespace mete::core::sweep
