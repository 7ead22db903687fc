// SPDX-License-Identifier: Apache-2.0
// The heads of HTTP/1.1 messages, from untrusted bytes. Nothing is copied: names and values are
// parts of the buffer. What two programs could read in two ways is refused (RFC 9112: a line that
// ends without CR, two lengths, a length beside chunks, a space before a colon, a folded line, …),
// so that the replica behind us never sees another boundary between requests than we do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mete::proxy {

struct Field {
  std::string_view name;
  std::string_view value;  // without blanks around it
};

// How the end of a body is found.
enum class Body {
  kNone,
  kLength,
  kChunked,
  kUntilClose,  // of responses alone
};

struct RequestHead {
  std::size_t size = 0;  // bytes of the head, its empty line included
  std::string_view method;
  std::string_view target;  // as written; "/path?query", "http://host/path" or "*"
  std::string_view path;    // of the target, from its '/' on, with the query
  std::string_view host;    // the Host field
  int minor = 1;            // HTTP/1.minor
  std::vector<Field> fields = {};
  Body body = Body::kNone;
  std::uint64_t length = 0;  // of kLength
  bool keep_alive = true;
  std::string connection = {};  // what all its Connection fields name: "keep-alive, x-hop"
  bool upgrade = false;         // to WebSocket; of a request without a body
  bool expects_continue = false;
  // The first of this name, whatever its case.
  const Field* find(std::string_view name) const;
};

struct ResponseHead {
  std::size_t size = 0;
  int status = 0;
  std::string_view reason;
  int minor = 1;
  std::vector<Field> fields = {};
  Body body = Body::kNone;
  std::uint64_t length = 0;
  bool keep_alive = true;
  std::string connection = {};
  const Field* find(std::string_view name) const;
};

// Why a request is refused.
struct Refusal {
  int status = 400;
  std::string_view why;
};

inline constexpr std::size_t kMaxHead = 16 << 10;
inline constexpr std::size_t kMaxFields = 200;

// The size of the head at the front of `bytes`, its empty line included; nullopt: it has not all
// arrived. `searched`: how many bytes were searched before; set to how many are now. Empty lines
// before a request are part of its head. A head whose lines end in LF alone ends too: it is
// refused.
std::optional<std::size_t> head_size(std::string_view bytes, std::size_t& searched);

// `bytes`: one whole head. On a refusal nothing else is set.
std::optional<Refusal> parse_request(std::string_view bytes, RequestHead& head);
// `of_head`: the response to HEAD, which has no body. `upgraded`: 101 is allowed. nullopt: fine;
// otherwise why it is none.
std::optional<std::string_view> parse_response(std::string_view bytes, bool of_head,
                                               ResponseHead& head);

bool equals_ignoring_case(std::string_view a, std::string_view b);
// Whether a list such as "keep-alive, Upgrade" has this element, whatever its case.
bool list_has(std::string_view list, std::string_view element);
// Fields that are for one connection alone, and are not passed on: Connection, those it names,
// Keep-Alive, Proxy-*, TE, Transfer-Encoding, Upgrade.
bool is_for_one_hop(std::string_view name, std::string_view connection);

// Follows the chunks of a body to find its end, and what is in them.
class Chunks {
 public:
  // How many of these bytes belong to the body. Fewer than all: its end is behind them, or it is
  // wrong. `data`: what was in the chunks is appended to it.
  std::size_t feed(std::string_view bytes, std::string* data = nullptr);
  bool done() const { return state_ == State::kDone; }
  bool failed() const { return state_ == State::kFailed; }
  // A chunk has ended and the next has not begun.
  bool is_between() const { return state_ == State::kSize && !has_digit_; }

 private:
  enum class State {
    kSize,
    kExtension,
    kSizeEnd,
    kData,
    kDataCr,
    kDataLf,
    kTrailer,
    kTrailerLine,
    kTrailerLf,
    kLastLf,
    kDone,
    kFailed
  };
  void take(char c);

  State state_ = State::kSize;
  std::uint64_t left_ = 0;
  std::size_t line_ = 0;  // bytes of the line of a size, or of all trailers
  bool has_digit_ = false;
};

}  // namespace mete::proxy
