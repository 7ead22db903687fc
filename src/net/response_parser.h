// SPDX-License-Identifier: Apache-2.0
// Parses one HTTP/1.1 response from an untrusted server, as its bytes arrive. Pure, no third-party
// code: the command line starts with it. Understands only what our daemon sends: Content-Length,
// chunked, until the end of the connection, and skipped 1xx answers. A response with two different
// lengths is corrupt. Holds at most kMaxHeadBytes of head or chunk line; the body is taken out
// piece by piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace mete::net {

class ResponseParser {
 public:
  static constexpr std::size_t kMaxHeadBytes = 16 << 10;

  // `head_request`: the answer to HEAD has no body, whatever it says.
  explicit ResponseParser(bool head_request = false) : head_request_(head_request) {}

  // Takes all of `bytes`, or fails (corrupt: not HTTP) for good.
  Result<void> feed(std::string_view bytes);
  // The connection ended. busy if that is too early: the server went away.
  Result<void> end();

  bool head_done() const { return state_ != State::kHead; }
  bool done() const { return state_ == State::kDone; }

  int status() const { return status_; }
  const std::string& content_type() const { return content_type_; }
  // Whether another response can follow on the connection.
  bool keep_alive() const { return keep_alive_; }

  // The part of the body that has arrived since the last call.
  std::string take_body();
  std::size_t body_waiting() const { return body_.size(); }
  // How many more bytes of it are announced; 0: unknown.
  std::uint64_t expected() const { return state_ == State::kLength ? left_ : 0; }

 private:
  enum class State {
    kHead,
    kLength,
    kUntilEnd,
    kChunkSize,
    kChunkData,
    kChunkEnd,
    kTrailer,
    kDone
  };

  Result<bool> step(std::string_view& bytes);
  Result<bool> take_line(std::string_view& bytes);
  Result<void> head_line();
  Result<void> status_line();
  Result<void> header_line();
  Result<void> head_ended();
  Result<void> chunk_size_line();
  void take_data(std::string_view& bytes);

  bool head_request_;
  State state_ = State::kHead;
  std::string line_;            // the line being read, without its end
  std::size_t head_bytes_ = 0;  // of this head, or of this chunk's line or trailer
  int status_ = 0;              // 0: the status line has not arrived
  bool keep_alive_ = true;
  bool has_length_ = false;
  bool chunked_ = false;
  std::uint64_t left_ = 0;  // bytes of the body or of the chunk that have not arrived
  std::string content_type_;
  std::string body_;
};

}  // namespace mete::net
