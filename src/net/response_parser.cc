// SPDX-License-Identifier: Apache-2.0
// See response_parser.h. feed() runs a state machine over the bytes: status line, header lines,
// then the body by length, by chunks or until the end of the connection. step() consumes what the
// current state can use; a line is collected in line_ until its LF. Every inconsistency is
// "corrupt", and final.
#include "net/response_parser.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/text.h"

namespace mete::net {

namespace {

constexpr std::uint64_t kMaxLength = std::uint64_t{1} << 62;  // sums stay far from overflow

Error not_http(const std::string& why) {
  return Error::corrupt("the answer is not HTTP/1.1: " + why);
}

}  // namespace

Result<void> ResponseParser::feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (done()) return not_http("bytes behind its end");
    const Result<bool> more = step(bytes);
    if (!more) return more.error();
    if (!*more) break;
  }
  return {};
}

Result<void> ResponseParser::end() {
  if (done()) return {};
  if (state_ == State::kUntilEnd) {
    state_ = State::kDone;
    return {};
  }
  return Error::busy("the daemon went away before it had answered");
}

std::string ResponseParser::take_body() { return std::exchange(body_, {}); }

// False: the bytes are used up in the middle of an element.
Result<bool> ResponseParser::step(std::string_view& bytes) {
  switch (state_) {
    case State::kLength:
    case State::kUntilEnd:
    case State::kChunkData:
      take_data(bytes);
      return true;
    case State::kDone:
      METE_ASSERT(false && "feed() looks before");
    case State::kHead:
    case State::kChunkSize:
    case State::kChunkEnd:
    case State::kTrailer:
      break;
  }
  Result<bool> whole = take_line(bytes);
  if (!whole || !*whole) return whole;
  Result<void> understood;
  if (state_ == State::kHead) {
    understood = head_line();
  } else if (state_ == State::kChunkSize) {
    understood = chunk_size_line();
  } else if (state_ == State::kChunkEnd) {
    if (!line_.empty()) understood = not_http("a chunk is longer than it says");
    state_ = State::kChunkSize;
    head_bytes_ = 0;
  } else if (line_.empty()) {  // the end of the trailer, which is ignored
    state_ = State::kDone;
  }
  line_.clear();
  if (!understood) return understood.error();
  return true;
}

// Up to LF; a CR before it belongs to the end of the line.
Result<bool> ResponseParser::take_line(std::string_view& bytes) {
  const std::size_t end = bytes.find('\n');
  const std::string_view part = bytes.substr(0, end);
  head_bytes_ += part.size() + 1;
  if (head_bytes_ > kMaxHeadBytes)
    return not_http("a head of more than " + std::to_string(kMaxHeadBytes) + " bytes");
  line_ += part;
  // A different protocol is recognised by its first bytes, so that a server which then waits is not
  // waited for.
  constexpr std::string_view kBegin = "HTTP/1.";
  if (state_ == State::kHead && status_ == 0 &&
      std::string_view(line_).substr(0, kBegin.size()) != kBegin.substr(0, line_.size()))
    return not_http("it begins with " + base::quote(line_));
  if (end == std::string_view::npos) {
    bytes = {};
    return false;
  }
  bytes.remove_prefix(end + 1);
  if (line_.ends_with('\r')) line_.pop_back();
  if (line_.find_first_of(std::string_view("\0\r", 2)) != std::string::npos)
    return not_http("control characters in its head");
  return true;
}

Result<void> ResponseParser::head_line() {
  if (status_ == 0) return status_line();
  return line_.empty() ? head_ended() : header_line();
}

// "HTTP/1.1 200 OK"
Result<void> ResponseParser::status_line() {
  const bool shape = line_.size() >= 12 && (line_[7] == '0' || line_[7] == '1') &&
                     line_[8] == ' ' && (line_.size() == 12 || line_[12] == ' ');
  const Result<std::uint64_t> status =
      base::parse_uint(shape ? std::string_view(line_).substr(9, 3) : "");
  if (!status || *status < 100) return not_http("its first line is " + base::quote(line_));
  status_ = static_cast<int>(*status);
  keep_alive_ = line_[7] == '1';
  return {};
}

Result<void> ResponseParser::header_line() {
  const std::size_t colon = line_.find(':');
  if (colon == std::string::npos || colon == 0 || line_.front() == ' ' || line_.front() == '\t')
    return not_http("a header line is " + base::quote(line_));
  const std::string name = base::to_lower(std::string_view(line_).substr(0, colon));
  const std::string_view value = base::trim(std::string_view(line_).substr(colon + 1));
  if (name == "content-length") {
    const Result<std::uint64_t> length = base::parse_uint(value);
    if (!length || *length > kMaxLength || has_length_)
      return not_http("its length is " + base::quote(value));
    has_length_ = true;
    left_ = *length;
  } else if (name == "transfer-encoding") {
    if (base::to_lower(value) != "chunked" || chunked_)
      return not_http("its encoding is " + base::quote(value));
    chunked_ = true;
  } else if (name == "connection") {
    if (base::to_lower(value) == "close") keep_alive_ = false;
    if (base::to_lower(value) == "keep-alive") keep_alive_ = true;
  } else if (name == "content-type") {
    content_type_ = value;
  }
  return {};
}

Result<void> ResponseParser::head_ended() {
  if (has_length_ && chunked_) return not_http("it has two lengths");
  if (status_ == 101) return not_http("it switches to another protocol");
  if (status_ < 200) {  // "100 Continue": the answer is still to come
    if (has_length_ || chunked_) return not_http("an interim answer has a body");
    status_ = 0;
    return {};
  }
  head_bytes_ = 0;
  if (head_request_ || status_ == 204 || status_ == 304 || (has_length_ && left_ == 0)) {
    state_ = State::kDone;
  } else if (chunked_) {
    state_ = State::kChunkSize;
  } else if (has_length_) {
    state_ = State::kLength;
  } else {
    state_ = State::kUntilEnd;
    keep_alive_ = false;
  }
  return {};
}

// "1a2b;extension"
Result<void> ResponseParser::chunk_size_line() {
  const std::string_view digits = base::trim(std::string_view(line_).substr(0, line_.find(';')));
  std::uint64_t size = 0;
  for (const char c : digits) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0 || size > kMaxLength / 16)
      return not_http("the size of a chunk is " + base::quote(line_));
    size = size * 16 + static_cast<unsigned>(digit);
  }
  if (digits.empty()) return not_http("a chunk has no size");
  left_ = size;
  state_ = size == 0 ? State::kTrailer : State::kChunkData;
  head_bytes_ = 0;
  return {};
}

void ResponseParser::take_data(std::string_view& bytes) {
  std::size_t size = bytes.size();
  if (state_ != State::kUntilEnd)
    size = static_cast<std::size_t>(std::min<std::uint64_t>(size, left_));
  body_ += bytes.substr(0, size);
  bytes.remove_prefix(size);
  if (state_ == State::kUntilEnd) return;
  left_ -= size;
  if (left_ > 0) return;
  state_ = state_ == State::kLength ? State::kDone : State::kChunkEnd;
}

}  // namespace mete::net
