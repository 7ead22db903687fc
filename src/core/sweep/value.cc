// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/value.h"

#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

namespace mete::core::sweep {

namespace {

// FNV-1a. Numbers go in byte by byte, lowest first, so that every machine computes the same hash.
class Fnv {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) add_byte(static_cast<unsigned char>(c));
  }
  void add(std::uint64_t number) {
    for (int i = 0; i < 8; ++i) add_byte(static_cast<unsigned char>((number >> (8 * i)) & 0xff));
  }
  std::uint64_t hash() const { return hash_; }

 private:
  void add_byte(unsigned char byte) { hash_ = (hash_ ^ byte) * 0x100000001b3; }
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace

Value of_text(std::string text) { return {Value::Kind::kText, std::move(text), 0}; }

Value of_bool(bool value) {
  return {Value::Kind::kBool, value ? "true" : "false", value ? 1.0 : 0.0};
}

Value of_integer(std::int64_t value) {
  return {Value::Kind::kInteger, std::to_string(value), static_cast<double>(value)};
}

Value of_real(double value) {
  value += 0.0;  // -0 becomes 0
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value);
  return {Value::Kind::kReal, std::string(text, error == std::errc() ? end : text), value};
}

Value guess(std::string_view word) {
  if (word == "true" || word == "false") return of_bool(word == "true");
  std::string_view digits = word;
  if (word.starts_with('-') || word.starts_with('+')) digits.remove_prefix(1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  // from_chars() also reads inf and nan. Zeros in front belong to names such as 007.
  const bool starts = !digits.empty() && (is_digit(digits[0]) || digits[0] == '.');
  if (!starts || (digits.size() > 1 && digits[0] == '0' && is_digit(digits[1])))
    return of_text(std::string(word));
  const char* const end = word.data() + word.size();
  const char* const begin = word.starts_with('+') ? digits.data() : word.data();
  Value value{Value::Kind::kInteger, std::string(word), 0};
  std::int64_t integer = 0;
  if (const auto [last, error] = std::from_chars(begin, end, integer);
      error == std::errc() && last == end) {
    value.number = static_cast<double>(integer);
    return value;
  }
  const auto [last, error] = std::from_chars(begin, end, value.number);
  if (error != std::errc() || last != end || !std::isfinite(value.number))
    return of_text(std::string(word));
  value.kind = Value::Kind::kReal;
  value.number += 0.0;
  return value;
}

std::uint64_t hash(const Point& point) {
  Fnv fnv;
  fnv.add(point.size());
  for (const std::optional<Value>& value : point) {
    fnv.add(value ? 1 + static_cast<std::uint64_t>(value->kind) : 0);
    if (!value) continue;
    fnv.add(value->text.size());
    fnv.add(std::string_view(value->text));
  }
  return fnv.hash();
}

}  // namespace mete::core::sweep
