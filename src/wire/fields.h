// SPDX-License-Identifier: Apache-2.0
// Reads a JSON object field by field without exceptions: the first error is kept, a wrong field
// reads as empty, and the caller checks once at the end. Unknown fields are ignored in our own
// files and in answers, so that a newer version can add some. In a request they are refused by
// name: a limit that this daemon does not know must not be dropped. Internal to wire/.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
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

// corrupt: not JSON, nested deeper than our own documents ever are, or an object with too many
// keys.
Result<Json> parse_json(std::string_view text);
// Bytes that are not UTF-8 are written as U+FFFD.
std::string write_json(const Json& json);
// The text that JsonText::exact() wrote; nullopt: not its format.
std::optional<std::string> exact_text(const Json& json);

// What becomes of fields that are not read.
enum class Unknown { kIgnored, kRefused };

// The fields that a reader reads, each with the fields of its object, or of the objects in its
// list.
struct Outline {
  std::map<std::string, Outline, std::less<>> fields;
};

class Fields {
 public:
  // `what` names the object in errors, "the request"; it must outlive this.
  Fields(const Json& object, std::string_view what, Unknown unknown = Unknown::kIgnored);
  // Reads nothing, and adds the fields that would be read to `outline`.
  Fields(Outline& outline, std::string_view what);

  bool has(std::string_view key) const { return find(key) != nullptr; }
  // Reads the value if it is present and of that kind: text, a whole number that fits the type,
  // true or false, Bytes, a time, a real number; a list of texts or numbers; a map of texts or
  // counts.
  bool get(std::string_view key, std::string& value);
  bool get(std::string_view key, bool& value);
  bool get(std::string_view key, Bytes& value);
  bool get(std::string_view key, WallTime& value);
  bool get(std::string_view key, double& value);
  template <std::integral Int>
  bool get(std::string_view key, Int& value);
  bool get(std::string_view key, std::vector<std::string>& values);
  bool get(std::string_view key, std::map<std::string, std::string>& values);
  bool get(std::string_view key, std::map<std::string, std::uint64_t>& values);
  template <class Number>
  bool get(std::string_view key, std::vector<Number>& values);
  // What errors call a missing value of this type.
  template <class Value>
  static constexpr std::string_view wanted();

  std::string text(std::string_view key);
  std::optional<std::string> text_if(std::string_view key);
  // A whole number; one that does not fit the type is an error, never cut.
  template <std::integral Int = std::uint64_t>
  Int number(std::string_view key);
  template <std::integral Int = std::uint64_t>
  std::optional<Int> number_if(std::string_view key);
  bool flag(std::string_view key);  // absent: false
  std::vector<std::string> texts(std::string_view key);
  // Text that JsonText::exact() wrote.
  std::optional<std::string> exact_if(std::string_view key);
  std::vector<std::string> exacts(std::string_view key);
  std::optional<WallTime> time_if(std::string_view key);
  // An object or a list; null if absent. A wrong kind is an error when it is read.
  const Json& child(std::string_view key) const;
  Fields part(std::string_view key, std::string_view what) const;
  // The elements of a list, which live as long as the object; empty if absent.
  const std::vector<Json>& list(std::string_view key);

  void fail(std::string_view key, std::string_view wanted);
  void fail(const Error& error);
  // Takes the value that was read from a part of this object, or its error.
  template <class Value>
  Value take(Result<Value> part) {
    if (part) return *std::move(part);
    fail(part.error());
    return Value{};
  }
  Unknown unknown() const { return unknown_; }
  // Call after all fields were read: with kRefused any other field is an error.
  void refuse_unknown();
  bool ok() const { return !error_.has_value(); }
  const Error& error() const { return *error_; }

  bool outlines() const { return outline_ != nullptr; }
  // A field that other code reads.
  void mention(std::string_view key) const {
    if (outline_ != nullptr) (void)has(key);
  }

 private:
  const Json* find(std::string_view key) const;

  const Json& object_;
  std::string_view what_;
  Unknown unknown_;
  Outline* outline_ = nullptr;
  mutable std::vector<std::string> asked_;  // with kRefused
  std::optional<Error> error_;
};

template <std::integral Int>
bool Fields::get(std::string_view key, Int& value) {
  const std::optional<Int> number = number_if<Int>(key);
  if (number) value = *number;
  return number.has_value();
}

// The number, in a type that can hold it.
template <std::integral Int>
std::optional<Int> number_in(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (std::in_range<Int>(number)) return static_cast<Int>(number);
  } else if (value.is_number_integer()) {
    const auto number = value.get<std::int64_t>();
    if (std::in_range<Int>(number)) return static_cast<Int>(number);
  }
  return std::nullopt;
}

template <class Number>
bool Fields::get(std::string_view key, std::vector<Number>& values) {
  constexpr bool kMayBeNull = requires(Number number) { number.reset(); };
  constexpr bool kBytes =
      std::is_same_v<Number, Bytes> || std::is_same_v<Number, std::optional<Bytes>>;
  constexpr bool kWide = kBytes || std::is_same_v<Number, std::uint64_t>;
  using Int = std::conditional_t<kWide, std::uint64_t, std::uint32_t>;
  const std::vector<Json>& elements = list(key);
  values.reserve(elements.size());
  for (const Json& element : elements) {
    const std::optional<Int> number = number_in<Int>(element);
    values.emplace_back();
    if constexpr (kBytes) {
      if (number) values.back() = Bytes::from_bytes(*number);
    } else {
      if (number) values.back() = *number;
    }
    if (!number && !(kMayBeNull && element.is_null()))
      fail(key, kMayBeNull ? "a list of whole numbers"
                : kBytes   ? "a list of bytes"
                           : "a list of numbers");
  }
  return true;
}

template <std::integral Int>
std::optional<Int> Fields::number_if(std::string_view key) {
  const Json& value = child(key);
  if (value.is_null()) return std::nullopt;
  const std::optional<Int> number = number_in<Int>(value);
  if (!number)
    fail(key, std::is_signed_v<Int> ? "a whole number of bearable size"
                                    : "a whole number of bearable size, not negative");
  return number;
}

template <std::integral Int>
Int Fields::number(std::string_view key) {
  const std::optional<Int> value = number_if<Int>(key);
  if (!value) fail(key, "a number");
  return value.value_or(0);
}

template <class Value>
constexpr std::string_view Fields::wanted() {
  if (std::is_same_v<Value, std::string>) return "text";
  if (std::is_same_v<Value, WallTime>) return "a time";
  return std::is_same_v<Value, bool> ? "true or false" : "a number";
}

}  // namespace mete::wire
