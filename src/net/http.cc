// SPDX-License-Identifier: Apache-2.0
// See http.h.
#include "net/http.h"

#include <optional>

#include "base/text.h"

namespace mete::net {

namespace {

const std::string* find(const Fields& fields, std::string_view name) {
  for (const auto& [key, value] : fields)
    if (key == name) return &value;
  return nullptr;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// nullopt: a broken escape, or one for the byte 0.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_digit(text[i + 1]);
      const int low = hex_digit(text[i + 2]);
      if (high < 0 || low < 0 || (high == 0 && low == 0)) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

bool has_encoded_slash(std::string_view path) {
  return path.find("%2F") != std::string_view::npos || path.find("%2f") != std::string_view::npos;
}

}  // namespace

const std::string* Request::header(std::string_view name) const { return find(headers, name); }
const std::string* Request::parameter(std::string_view name) const { return find(query, name); }

Result<Target> parse_target(std::string_view text) {
  constexpr std::string_view kScheme = "http://";
  std::string_view rest = text;
  if (rest.starts_with(kScheme)) {
    const std::size_t slash = rest.find('/', kScheme.size());
    rest = slash == std::string_view::npos ? "/" : rest.substr(slash);
  }
  if (!rest.starts_with('/'))
    return Error::invalid("not a path that begins with /: " + base::quote(text));
  const std::size_t mark = rest.find('?');
  const std::string_view raw_path = rest.substr(0, mark);
  std::optional<std::string> path = percent_decode(raw_path, false);
  if (!path || has_encoded_slash(raw_path))
    return Error::invalid("a broken escape in the path " + base::quote(raw_path));
  Target target{std::move(*path), {}};
  if (mark == std::string_view::npos) return target;
  for (const std::string_view part : base::split(rest.substr(mark + 1), '&')) {
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    std::optional<std::string> name = percent_decode(part.substr(0, equals), true);
    std::optional<std::string> value =
        equals == std::string_view::npos ? "" : percent_decode(part.substr(equals + 1), true);
    if (!name || !value) return Error::invalid("a broken escape in the query " + base::quote(part));
    target.query.emplace_back(std::move(*name), std::move(*value));
  }
  return target;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

std::string_view reason_phrase(int status) {
  struct Phrase {
    int status;
    std::string_view text;
  };
  static constexpr Phrase kPhrases[] = {
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {303, "See Other"},
      {304, "Not Modified"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {413, "Content Too Large"},
      {415, "Unsupported Media Type"},
      {417, "Expectation Failed"},
      {421, "Misdirected Request"},
      {422, "Unprocessable Content"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
      {507, "Insufficient Storage"},
  };
  for (const Phrase& phrase : kPhrases)
    if (phrase.status == status) return phrase.text;
  return "Unknown";
}

}  // namespace mete::net
