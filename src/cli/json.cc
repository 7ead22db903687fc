// SPDX-License-Identifier: Apache-2.0
// See json.h.
#include "cli/json.h"

#include "base/text.h"
#include "wire/json_text.h"

namespace mete::cli {

std::string json_string(std::string_view text) {
  std::string out;
  wire::append_json_string(out, text);
  return base::printable_json(std::move(out));
}

JsonObject& JsonObject::raw(std::string_view key, std::string_view value) {
  if (!body_.empty()) body_ += ',';
  body_.append(json_string(key)).append(":").append(value);
  return *this;
}

std::string json_array(const std::vector<std::string>& elements) {
  return std::string("[").append(base::join(elements, ",")).append("]");
}

}  // namespace mete::cli
