// SPDX-License-Identifier: Apache-2.0
// Writes the small JSON documents of the command line. Keys stay in the order in which they were
// added. Invalid UTF-8 (a command line may hold anything) is replaced by U+FFFD: always valid JSON.
// Control characters are escaped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mete::cli {

std::string json_string(std::string_view text);

class JsonObject {
 public:
  JsonObject& text(std::string_view key, std::string_view value) {
    return raw(key, json_string(value));
  }
  JsonObject& number(std::string_view key, std::uint64_t value) {
    return raw(key, std::to_string(value));
  }
  // `value` is JSON already.
  JsonObject& raw(std::string_view key, std::string_view value);
  std::string str() const { return "{" + body_ + "}"; }

 private:
  std::string body_;
};

// Elements are JSON already.
std::string json_array(const std::vector<std::string>& elements);

}  // namespace mete::cli
