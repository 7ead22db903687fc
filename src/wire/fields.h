// SPDX-License-Identifier: Apache-2.0
// Reading a JSON object field by field without exceptions: the first thing that is wrong is
// remembered, everything after it reads as empty, and the caller looks once at the end. Fields that
// nobody asked for are ignored, so that a newer sender can add some. Internal to wire/.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"

namespace mete::wire {

using Json = nlohmann::ordered_json;

// corrupt: not JSON, or nested deeper than our own documents ever are.
Result<Json> parse_json(std::string_view text);
// Text that is not UTF-8 is written with U+FFFD in place of what is wrong.
std::string write_json(const Json& json);

class Fields {
 public:
  // `what` names the object in errors: "the request".
  Fields(const Json& object, std::string_view what);

  bool has(std::string_view key) const;
  std::string text(std::string_view key);
  std::optional<std::string> text_if(std::string_view key);
  std::uint64_t number(std::string_view key);
  std::optional<std::uint64_t> number_if(std::string_view key);
  std::optional<std::int64_t> integer_if(std::string_view key);
  bool flag(std::string_view key);  // absent: false
  std::vector<std::string> texts(std::string_view key);
  WallTime time(std::string_view key);
  std::optional<WallTime> time_if(std::string_view key);
  // An object or a list; null when absent. Wrong kinds are remembered by whoever reads them.
  const Json& child(std::string_view key) const;
  // The elements of a list; absent: none.
  std::vector<Json> list(std::string_view key);

  void fail(std::string_view key, std::string_view wanted);
  void fail(const Error& error);
  bool ok() const { return !error_.has_value(); }
  const Error& error() const { return *error_; }

 private:
  const Json& object_;
  std::string what_;
  std::optional<Error> error_;
};

}  // namespace mete::wire
