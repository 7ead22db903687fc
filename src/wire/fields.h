// SPDX-License-Identifier: Apache-2.0
// Reading a JSON object field by field without exceptions: the first thing that is wrong is
// remembered, everything after it reads as empty, and the caller looks once at the end. Fields that
// nobody asked for are ignored in what we have written ourselves and in answers, so that a newer
// version can add some. In a request they are refused by name: a limit that this daemon does not
// know must not be dropped. Internal to wire/.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"

namespace mete::wire {

using Json = nlohmann::ordered_json;

// corrupt: not JSON, nested deeper than our own documents ever are, or an object of too many keys.
Result<Json> parse_json(std::string_view text);
// Text that is not UTF-8 is written with U+FFFD in place of what is wrong.
std::string write_json(const Json& json);
// The text that JsonText::exact() wrote; nullopt: it did not write that.
std::optional<std::string> exact_text(const Json& json);

// What becomes of fields that are never asked for.
enum class Unknown { kIgnored, kRefused };

class Fields {
 public:
  // `what` names the object in errors: "the request".
  Fields(const Json& object, std::string_view what, Unknown unknown = Unknown::kIgnored);

  bool has(std::string_view key) const;
  std::string text(std::string_view key);
  std::optional<std::string> text_if(std::string_view key);
  // A whole number; one that the type cannot hold is wrong, never cut.
  template <std::integral Int = std::uint64_t>
  Int number(std::string_view key);
  template <std::integral Int = std::uint64_t>
  std::optional<Int> number_if(std::string_view key);
  bool flag(std::string_view key);  // absent: false
  std::vector<std::string> texts(std::string_view key);
  // Text that JsonText::exact() wrote.
  std::string exact(std::string_view key);
  std::optional<std::string> exact_if(std::string_view key);
  std::vector<std::string> exacts(std::string_view key);
  std::map<std::string, std::string> text_map(std::string_view key);
  std::map<std::string, std::uint64_t> counts(std::string_view key);
  std::optional<Bytes> bytes_if(std::string_view key);
  Bytes bytes(std::string_view key);
  WallTime time(std::string_view key);
  std::optional<WallTime> time_if(std::string_view key);
  // An object or a list; null when absent. Wrong kinds are remembered by whoever reads them.
  const Json& child(std::string_view key) const;
  // The elements of a list, which live as long as the object; absent: none.
  const std::vector<Json>& list(std::string_view key);

  void fail(std::string_view key, std::string_view wanted);
  void fail(const Error& error);
  // What was read of a part of this object, if it could be.
  template <class Value>
  Value take(Result<Value> part) {
    if (part) return *std::move(part);
    fail(part.error());
    return Value{};
  }
  // For the parts of this object.
  Unknown unknown() const { return unknown_; }
  // Once everything was asked for: with kRefused a field that was not is an error.
  void refuse_unknown();
  bool ok() const { return !error_.has_value(); }
  const Error& error() const { return *error_; }

 private:
  const Json& object_;
  std::string what_;
  Unknown unknown_;
  mutable std::vector<std::string> asked_;  // with kRefused
  std::optional<Error> error_;
};

template <std::integral Int>
std::optional<Int> Fields::number_if(std::string_view key) {
  const Json& value = child(key);
  if (value.is_null()) return std::nullopt;
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (std::in_range<Int>(number)) return static_cast<Int>(number);
  } else if (value.is_number_integer()) {
    const auto number = value.get<std::int64_t>();
    if (std::in_range<Int>(number)) return static_cast<Int>(number);
  }
  fail(key, std::is_signed_v<Int> ? "a whole number of bearable size"
                                  : "a whole number of bearable size, not negative");
  return std::nullopt;
}

template <std::integral Int>
Int Fields::number(std::string_view key) {
  const std::optional<Int> value = number_if<Int>(key);
  if (!value) fail(key, "a number");
  return value.value_or(0);
}

}  // namespace mete::wire
