// SPDX-License-Identifier: Apache-2.0
// See head.h. Lines splits a head; parse_fields() checks and keeps the fields; Framing collects
// what says where the body ends, and judges it for a request or a response.
#include "proxy/head.h"

#include <algorithm>
#include <array>

namespace mete::proxy {

namespace {

constexpr std::size_t kMaxChunkLine = 256;
constexpr std::size_t kMaxTrailers = 8 << 10;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

// RFC 9110: tchar.
constexpr std::array<bool, 256> make_token_table() {
  std::array<bool, 256> table{};
  for (int c = '0'; c <= '9'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (int c = 'A'; c <= 'Z'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; ++c) table[static_cast<std::size_t>(c)] = true;
  for (const char c : std::string_view("!#$%&'*+-.^_`|~"))
    table[static_cast<unsigned char>(c)] = true;
  return table;
}
constexpr std::array<bool, 256> kToken = make_token_table();

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return kToken[static_cast<unsigned char>(c)]; });
}

// Visible bytes, blanks, and those beyond ASCII.
bool is_value(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 ? byte != 0x7f : c == '\t';
  });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// Takes a line and its CR LF; nullopt: there is a CR or LF alone.
std::optional<std::string_view> take_line(std::string_view& bytes) {
  const std::size_t end = bytes.find_first_of("\r\n");
  if (end == std::string_view::npos || bytes.substr(end, 2) != "\r\n") return std::nullopt;
  const std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(end + 2);
  return line;
}

// Digits alone; nullopt also for a number that no file has.
std::optional<std::uint64_t> parse_length(std::string_view text) {
  if (text.empty() || text.size() > 18) return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : text) {
    if (!is_digit(c)) return std::nullopt;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

struct Framing {
  std::optional<std::uint64_t> length;
  bool chunked = false;
  std::size_t hosts = 0;
  std::string_view host;
  bool close = false;
  bool keep = false;
  std::string connection;
  bool names_upgrade = false;  // Connection: upgrade
  bool upgrade = false;        // Upgrade: websocket
  bool expects_continue = false;
  bool expects_other = false;
};

// "" if it is fine.
std::string_view take_field(const Field& field, Framing& framing) {
  const auto is = [&](std::string_view name) { return equals_ignoring_case(field.name, name); };
  switch (field.name.size()) {
    case 4:
      if (is("host")) ++framing.hosts, framing.host = field.value;
      break;
    case 6:
      if (!is("expect")) break;
      framing.expects_continue = equals_ignoring_case(field.value, "100-continue");
      framing.expects_other = !framing.expects_continue;
      break;
    case 7:
      if (is("upgrade")) framing.upgrade = equals_ignoring_case(field.value, "websocket");
      break;
    case 10:
      if (!is("connection")) break;
      framing.close = framing.close || list_has(field.value, "close");
      framing.keep = framing.keep || list_has(field.value, "keep-alive");
      framing.names_upgrade = framing.names_upgrade || list_has(field.value, "upgrade");
      framing.connection.append(framing.connection.empty() ? "" : ", ").append(field.value);
      // Without these a replica would see other boundaries, or another host.
      for (const std::string_view name : {"content-length", "host", "transfer-encoding", "trailer"})
        if (list_has(field.value, name)) return "Connection names a field that is not of one hop";
      break;
    case 14: {
      if (!is("content-length")) break;
      const std::optional<std::uint64_t> length = parse_length(field.value);
      if (!length) return "Content-Length is no number";
      if (framing.length) return "there are two Content-Length fields";
      framing.length = length;
      break;
    }
    case 17:
      if (!is("transfer-encoding")) break;
      if (framing.chunked || !equals_ignoring_case(field.value, "chunked"))
        return "Transfer-Encoding is not chunked";
      framing.chunked = true;
      break;
    default:
      break;
  }
  return "";
}

// The lines behind the first one. "" if they are fine.
std::string_view parse_fields(std::string_view bytes, std::vector<Field>& fields,
                              Framing& framing) {
  for (;;) {
    const std::optional<std::string_view> line = take_line(bytes);
    if (!line) return "a line of the head does not end with CR LF";
    if (line->empty()) return bytes.empty() ? "" : "text follows the head";
    const std::size_t colon = line->find(':');
    if (colon == std::string_view::npos) return "a line of the head has no colon";
    const Field field{line->substr(0, colon), trimmed(line->substr(colon + 1))};
    if (!is_token(field.name)) return "the name of a field is none";
    if (!is_value(field.value)) return "a field has a control character";
    if (fields.size() == kMaxFields) return "there are too many fields";
    fields.push_back(field);
    if (const std::string_view why = take_field(field, framing); !why.empty()) return why;
  }
}

// "HTTP/1.0", "HTTP/1.1".
std::optional<int> minor_of(std::string_view version) {
  if (version == "HTTP/1.1") return 1;
  if (version == "HTTP/1.0") return 0;
  return std::nullopt;
}

bool is_target(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > 0x20 && byte != 0x7f;
  });
}

const Field* find_in(const std::vector<Field>& fields, std::string_view name) {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const Field& field) {
    return equals_ignoring_case(field.name, name);
  });
  return found == fields.end() ? nullptr : &*found;
}

}  // namespace

const Field* RequestHead::find(std::string_view name) const { return find_in(fields, name); }
const Field* ResponseHead::find(std::string_view name) const { return find_in(fields, name); }

bool equals_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(),
                                            [](char x, char y) { return lower(x) == lower(y); });
}

bool list_has(std::string_view list, std::string_view element) {
  for (;;) {
    const std::size_t comma = list.find(',');
    if (equals_ignoring_case(trimmed(list.substr(0, comma)), element)) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

bool is_for_one_hop(std::string_view name, std::string_view connection) {
  for (const std::string_view one :
       {"connection", "keep-alive", "te", "transfer-encoding", "upgrade", "proxy-connection",
        "proxy-authorization", "proxy-authenticate"})
    if (equals_ignoring_case(name, one)) return true;
  return !connection.empty() && list_has(connection, name);
}

std::optional<std::size_t> head_size(std::string_view bytes, std::size_t& searched) {
  // Empty lines before a request (RFC 9112, 2.2).
  std::size_t start = 0;
  while (bytes.substr(start, 2) == "\r\n") start += 2;
  std::size_t at = std::max(searched > 2 ? searched - 2 : 0, start);
  searched = bytes.size();
  // Also where others would see an end; the parser refuses those.
  while ((at = bytes.find('\n', at)) != std::string_view::npos) {
    ++at;
    if (bytes.substr(at, 1) == "\n") return at + 1;
    if (bytes.substr(at, 2) == "\r\n") return at + 2;
  }
  return std::nullopt;
}

std::optional<Refusal> parse_request(std::string_view bytes, RequestHead& head) {
  RequestHead read;
  read.size = bytes.size();
  while (bytes.starts_with("\r\n")) bytes.remove_prefix(2);
  const std::optional<std::string_view> line = take_line(bytes);
  if (!line) return Refusal{400, "the request line does not end with CR LF"};
  const std::size_t first = line->find(' ');
  const std::size_t last = line->rfind(' ');
  if (first == std::string_view::npos || first == last)
    return Refusal{400, "this is no HTTP request"};
  read.method = line->substr(0, first);
  read.target = line->substr(first + 1, last - first - 1);
  const std::string_view version = line->substr(last + 1);
  if (!is_token(read.method) || !is_target(read.target))
    return Refusal{400, "this is no HTTP request"};
  const std::optional<int> minor = minor_of(version);
  if (!minor) return Refusal{505, "only HTTP/1.1 and HTTP/1.0 are spoken here"};
  read.minor = *minor;
  if (read.method == "CONNECT") return Refusal{501, "this is no proxy for CONNECT"};
  read.path = read.target;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!equals_ignoring_case(read.target.substr(0, scheme.size()), scheme)) continue;
    const std::size_t slash = read.target.find_first_of("/?#", scheme.size());
    if (slash != std::string_view::npos && read.target[slash] != '/')
      return Refusal{400, "the target has no path"};
    read.path = slash == std::string_view::npos ? "/" : read.target.substr(slash);
  }
  if (!read.path.starts_with('/') && !(read.path == "*" && read.method == "OPTIONS"))
    return Refusal{400, "the target is no path"};
  Framing framing;
  if (const std::string_view why = parse_fields(bytes, read.fields, framing); !why.empty())
    return Refusal{400, why};
  if (framing.hosts > 1 || (framing.hosts == 0 && read.minor == 1))
    return Refusal{400, "HTTP/1.1 needs one Host field"};
  if (framing.chunked && framing.length)
    return Refusal{400, "Content-Length and Transfer-Encoding contradict each other"};
  if (framing.chunked && read.minor == 0) return Refusal{400, "HTTP/1.0 has no Transfer-Encoding"};
  if (framing.expects_other) return Refusal{417, "only 100-continue can be expected"};
  read.host = framing.host;
  read.body = framing.chunked ? Body::kChunked : framing.length ? Body::kLength : Body::kNone;
  read.length = framing.length.value_or(0);
  read.keep_alive = read.minor == 1 ? !framing.close : framing.keep && !framing.close;
  read.upgrade =
      read.minor == 1 && framing.upgrade && framing.names_upgrade && read.body == Body::kNone;
  read.expects_continue = read.minor == 1 && framing.expects_continue;
  read.connection = std::move(framing.connection);
  head = std::move(read);
  return std::nullopt;
}

std::optional<std::string_view> parse_response(std::string_view bytes, bool of_head,
                                               ResponseHead& head) {
  ResponseHead read;
  read.size = bytes.size();
  const std::optional<std::string_view> line = take_line(bytes);
  if (!line) return "the status line does not end with CR LF";
  const std::optional<int> minor = minor_of(line->substr(0, 8));
  if (!minor || line->size() < 12 || (*line)[8] != ' ') return "this is no HTTP response";
  const std::string_view digits = line->substr(9, 3);
  if (!std::all_of(digits.begin(), digits.end(), is_digit) || digits[0] < '1' ||
      (line->size() > 12 && (*line)[12] != ' '))
    return "this is no HTTP response";
  read.minor = *minor;
  read.status = (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
  if (line->size() > 13) read.reason = line->substr(13);
  if (!is_value(read.reason)) return "this is no HTTP response";
  Framing framing;
  if (const std::string_view why = parse_fields(bytes, read.fields, framing); !why.empty())
    return why;
  if (framing.chunked && framing.length)
    return "Content-Length and Transfer-Encoding contradict each other";
  if (framing.chunked && read.minor == 0) return "HTTP/1.0 has no Transfer-Encoding";
  read.keep_alive = read.minor == 1 ? !framing.close : framing.keep && !framing.close;
  read.length = framing.length.value_or(0);
  read.connection = std::move(framing.connection);
  if (of_head || read.status < 200 || read.status == 204 || read.status == 304)
    read.body = Body::kNone;
  else if (framing.chunked)
    read.body = Body::kChunked;
  else if (framing.length)
    read.body = Body::kLength;
  else
    read.body = Body::kUntilClose;
  if (read.body == Body::kUntilClose) read.keep_alive = false;
  head = std::move(read);
  return std::nullopt;
}

std::size_t Chunks::feed(std::string_view bytes, std::string* data) {
  std::size_t at = 0;
  while (at < bytes.size() && state_ != State::kDone && state_ != State::kFailed) {
    if (state_ == State::kData) {
      const std::size_t part =
          static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size() - at));
      if (data != nullptr) data->append(bytes.substr(at, part));
      left_ -= part;
      at += part;
      if (left_ == 0) state_ = State::kDataCr;
      continue;
    }
    take(bytes[at]);
    if (state_ != State::kFailed) ++at;
  }
  return at;
}

void Chunks::take(char c) {
  const auto expect = [&](char wanted, State next) {
    state_ = c == wanted ? next : State::kFailed;
  };
  switch (state_) {
    case State::kSize: {
      const char low = lower(c);
      const bool letter = low >= 'a' && low <= 'f';
      if (is_digit(c) || letter) {
        if (left_ >> 56 != 0) {
          state_ = State::kFailed;
          return;
        }
        left_ = left_ * 16 + static_cast<std::uint64_t>(letter ? low - 'a' + 10 : c - '0');
        has_digit_ = true;
      } else if (!has_digit_) {
        state_ = State::kFailed;
      } else if (c == '\r') {
        state_ = State::kSizeEnd;
      } else if (c == ';' || is_blank(c)) {
        state_ = State::kExtension;
      } else {
        state_ = State::kFailed;
      }
      if (++line_ > kMaxChunkLine) state_ = State::kFailed;
      return;
    }
    case State::kExtension:
      if (c == '\r')
        state_ = State::kSizeEnd;
      else if (++line_ > kMaxChunkLine || c == '\n' || !is_value({&c, 1}))
        state_ = State::kFailed;
      return;
    case State::kSizeEnd:
      expect('\n', left_ == 0 ? State::kTrailer : State::kData);
      line_ = 0;
      has_digit_ = false;
      return;
    case State::kDataCr:
      return expect('\r', State::kDataLf);
    case State::kDataLf:
      return expect('\n', State::kSize);
    case State::kTrailer:
      state_ = c == '\r' ? State::kLastLf : State::kTrailerLine;
      [[fallthrough]];
    case State::kTrailerLine:
      if (++line_ > kMaxTrailers || (c != '\r' && !is_value({&c, 1}))) state_ = State::kFailed;
      if (state_ == State::kTrailerLine && c == '\r') state_ = State::kTrailerLf;
      return;
    case State::kTrailerLf:
      return expect('\n', State::kTrailer);
    case State::kLastLf:
      return expect('\n', State::kDone);
    case State::kData:
    case State::kDone:
    case State::kFailed:
      return;
  }
}

}  // namespace mete::proxy
