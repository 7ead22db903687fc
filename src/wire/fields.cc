// SPDX-License-Identifier: Apache-2.0
// See fields.h. Each get() looks its field up, checks its kind and range, and reports an error to
// fail(), which keeps the first. With kRefused every key that is asked for is noted, and
// refuse_unknown() compares them with the object's keys. parse_json() bounds depth and keys while
// it parses.
#include "wire/fields.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace mete::wire {

namespace {

constexpr int kMaxDepth = 32;
// Objects are searched linearly, so a megabyte of keys would take minutes.
constexpr std::size_t kMaxKeys = 256;
const Json kNull;
const std::vector<Json> kNone;

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

std::optional<std::string> exact_text(const Json& json) {
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_object() || json.size() != 1 || !json.contains("hex")) return std::nullopt;
  const Json& hex = json.at("hex");
  return hex.is_string() ? base::from_hex(hex.get_ref<const std::string&>()) : std::nullopt;
}

Fields::Fields(const Json& object, std::string_view what, Unknown unknown)
    : object_(object.is_object() ? object : kNull), what_(what), unknown_(unknown) {
  if (!object.is_object()) error_ = Error::invalid(std::string(what_) + " is not an object");
}

Fields::Fields(Outline& outline, std::string_view what)
    : object_(kNull), what_(what), unknown_(Unknown::kIgnored), outline_(&outline) {}

const Json* Fields::find(std::string_view key) const {
  if (unknown_ == Unknown::kRefused) asked_.emplace_back(key);
  if (outline_ != nullptr) outline_->fields.try_emplace(std::string(key));
  if (!object_.is_object()) return nullptr;
  const auto at = object_.find(key);
  return at == object_.end() ? nullptr : &*at;
}

const Json& Fields::child(std::string_view key) const {
  const Json* value = find(key);
  return value == nullptr ? kNull : *value;
}

Fields Fields::part(std::string_view key, std::string_view what) const {
  if (outline_ != nullptr) return Fields(outline_->fields[std::string(key)], what);
  return Fields(child(key), what, unknown_);
}

void Fields::fail(std::string_view key, std::string_view wanted) {
  if (error_) return;
  error_ = Error::invalid(std::string(what_) + ": " + base::quote(key) + " must be " +
                          std::string(wanted));
}

void Fields::fail(const Error& error) {
  if (!error_) error_ = error;
}

void Fields::refuse_unknown() {
  if (unknown_ == Unknown::kIgnored || !object_.is_object()) return;
  for (const auto& [key, value] : object_.items())
    if (std::find(asked_.begin(), asked_.end(), key) == asked_.end())
      return fail(Error::invalid(std::string(what_) + ": unknown field " + base::quote(key))
                      .with_evidence("this daemon would not do what it asks for")
                      .with_hint("mete daemon status and mete version say whether the daemon is "
                                 "older than the program that asks"));
}

std::string Fields::text(std::string_view key) {
  std::optional<std::string> value = text_if(key);
  if (!value) fail(key, "text");
  return value.value_or("");
}

std::optional<std::string> Fields::text_if(std::string_view key) {
  std::string value;
  return get(key, value) ? std::optional(std::move(value)) : std::nullopt;
}

bool Fields::flag(std::string_view key) {
  bool value = false;
  return get(key, value) && value;
}

bool Fields::get(std::string_view key, bool& value) {
  const Json* found = find(key);
  if (found == nullptr) return false;
  value = found->is_boolean() && found->get<bool>();
  if (!found->is_boolean() && !found->is_null()) fail(key, "true or false");
  return true;
}

bool Fields::get(std::string_view key, std::string& value) {
  const Json& text = child(key);
  if (text.is_string())
    value = text.get_ref<const std::string&>();
  else if (!text.is_null())
    fail(key, "text");
  return text.is_string();
}

bool Fields::get(std::string_view key, Bytes& value) {
  std::uint64_t count = 0;
  if (!get(key, count)) return false;
  value = Bytes::from_bytes(count);
  return true;
}

bool Fields::get(std::string_view key, WallTime& value) {
  const std::optional<WallTime> time = time_if(key);
  if (time) value = *time;
  return time.has_value();
}

bool Fields::get(std::string_view key, double& value) {
  const Json& number = child(key);
  if (number.is_number())
    value = number.get<double>();
  else if (!number.is_null())
    fail(key, "a number");
  return number.is_number();
}

bool Fields::get(std::string_view key, std::vector<std::string>& values) {
  values = texts(key);
  return true;
}

const std::vector<Json>& Fields::list(std::string_view key) {
  const Json& value = child(key);
  if (value.is_array()) return value.get_ref<const Json::array_t&>();
  if (!value.is_null()) fail(key, "a list");
  return kNone;
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

std::optional<std::string> Fields::exact_if(std::string_view key) {
  const Json& value = child(key);
  if (value.is_null()) return std::nullopt;
  std::optional<std::string> text = exact_text(value);
  if (!text) fail(key, "text");
  return text;
}

std::vector<std::string> Fields::exacts(std::string_view key) {
  std::vector<std::string> values;
  for (const Json& element : list(key)) {
    if (std::optional<std::string> text = exact_text(element))
      values.push_back(*std::move(text));
    else
      fail(key, "a list of texts");
  }
  return values;
}

bool Fields::get(std::string_view key, std::map<std::string, std::string>& values) {
  const Json& object = child(key);
  if (!object.is_null() && !object.is_object()) fail(key, "an object of texts");
  if (!object.is_object()) return false;
  for (const auto& [name, value] : object.items()) {
    if (!value.is_string()) fail(key, "an object of texts");
    values[name] = value.is_string() ? value.get<std::string>() : "";
  }
  return true;
}

bool Fields::get(std::string_view key, std::map<std::string, std::uint64_t>& values) {
  const Json& object = child(key);
  if (!object.is_null() && !object.is_object()) fail(key, "an object of numbers");
  if (!object.is_object()) return false;
  for (const auto& [name, value] : object.items()) {
    if (!value.is_number_unsigned()) fail(key, "an object of numbers");
    values[name] = value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
  }
  return true;
}

std::optional<WallTime> Fields::time_if(std::string_view key) {
  const Json& value = child(key);
  if (value.is_null()) return std::nullopt;
  if (!value.is_string()) {
    fail(key, "text");
    return std::nullopt;
  }
  const std::optional<WallTime> time = base::parse_wall_time(value.get_ref<const std::string&>());
  if (!time) fail(key, "a time like 2026-11-15T05:50:43.123Z");
  return time;
}

}  // namespace mete::wire
