// SPDX-License-Identifier: Apache-2.0
// See json.h.
#include "cli/json.h"

#include "base/text.h"

namespace mete::cli {

namespace {

// The length of the UTF-8 sequence at the beginning of the text, or 0 if there is none: overlong
// forms, surrogates and numbers past U+10FFFF are none.
std::size_t sequence_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = at(0);
  std::size_t length = 0;
  if (first >= 0xc2 && first <= 0xdf) length = 2;
  if (first >= 0xe0 && first <= 0xef) length = 3;
  if (first >= 0xf0 && first <= 0xf4) length = 4;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((at(i) & 0xc0) != 0x80) return 0;
  const unsigned char second = at(1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second > 0x9f;
  const bool too_large = first == 0xf4 && second > 0x8f;
  return overlong || surrogate || too_large ? 0 : length;
}

void append_ascii(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  if (c == '"' || c == '\\') {
    out += '\\';
    out += c;
  } else if (c == '\n') {
    out += "\\n";
  } else if (c == '\t') {
    out += "\\t";
  } else if (byte < 0x20 || byte == 0x7f) {
    out += "\\u00";
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  } else {
    out += c;
  }
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    std::size_t length = 1;
    if (static_cast<unsigned char>(text.front()) < 0x80) {
      append_ascii(out, text.front());
    } else if (const std::size_t valid = sequence_length(text); valid != 0) {
      out.append(text.substr(0, valid));
      length = valid;
    } else {
      out += "\xef\xbf\xbd";
    }
    text.remove_prefix(length);
  }
  return base::printable_json(out + "\"");
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
