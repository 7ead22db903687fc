// SPDX-License-Identifier: Apache-2.0
#include "wire/fields.h"

#include <array>

#include "base/text.h"

namespace mete::wire {

namespace {

constexpr int kMaxDepth = 32;
// An object is searched from its start, so a megabyte of keys would take minutes.
constexpr std::size_t kMaxKeys = 256;
const Json kNull;

}  // namespace

Result<Json> parse_json(std::string_view text) {
  bool refused = false;
  std::array<std::size_t, kMaxDepth + 2> keys{};  // of the object at each level
  const Json::parser_callback_t callback = [&](int level, Json::parse_event_t event, Json&) {
    refused = refused || level > kMaxDepth;
    if (refused) return false;
    std::size_t& count = keys[static_cast<std::size_t>(level)];
    if (event == Json::parse_event_t::object_end) keys[static_cast<std::size_t>(level) + 1] = 0;
    if (event == Json::parse_event_t::key) refused = ++count > kMaxKeys;
    return !refused;
  };
  Json json = Json::parse(text, callback, /*allow_exceptions=*/false);
  if (refused || json.is_discarded()) return Error::corrupt("this is not JSON that we understand");
  return json;
}

std::string write_json(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Fields::Fields(const Json& object, std::string_view what)
    : object_(object.is_object() ? object : kNull), what_(what) {
  if (!object.is_object()) error_ = Error::invalid(what_ + " is not an object");
}

bool Fields::has(std::string_view key) const {
  return object_.is_object() && object_.contains(key);
}

const Json& Fields::child(std::string_view key) const {
  if (!has(key)) return kNull;
  return object_.at(std::string(key));
}

void Fields::fail(std::string_view key, std::string_view wanted) {
  if (error_) return;
  error_ = Error::invalid(what_ + ": " + base::quote(key) + " must be " + std::string(wanted));
}

void Fields::fail(const Error& error) {
  if (!error_) error_ = error;
}

std::string Fields::text(std::string_view key) {
  std::optional<std::string> value = text_if(key);
  if (!value) fail(key, "text");
  return value.value_or("");
}

std::optional<std::string> Fields::text_if(std::string_view key) {
  const Json& value = child(key);
  if (value.is_null()) return std::nullopt;
  if (value.is_string()) return value.get<std::string>();
  fail(key, "text");
  return std::nullopt;
}

bool Fields::flag(std::string_view key) {
  const Json& value = child(key);
  if (value.is_null()) return false;
  if (value.is_boolean()) return value.get<bool>();
  fail(key, "true or false");
  return false;
}

std::vector<Json> Fields::list(std::string_view key) {
  const Json& value = child(key);
  if (value.is_null()) return {};
  if (value.is_array()) return {value.begin(), value.end()};
  fail(key, "a list");
  return {};
}

std::vector<std::string> Fields::texts(std::string_view key) {
  std::vector<std::string> values;
  for (const Json& element : list(key)) {
    if (element.is_string())
      values.push_back(element.get<std::string>());
    else
      fail(key, "a list of texts");
  }
  return values;
}

std::optional<WallTime> Fields::time_if(std::string_view key) {
  const std::optional<std::string> value = text_if(key);
  if (!value) return std::nullopt;
  const std::optional<WallTime> time = base::parse_wall_time(*value);
  if (!time) fail(key, "a time like 2026-11-15T05:50:43.123Z");
  return time;
}

WallTime Fields::time(std::string_view key) {
  const std::optional<WallTime> value = time_if(key);
  if (!value) fail(key, "a time");
  return value.value_or(WallTime{});
}

}  // namespace mete::wire
