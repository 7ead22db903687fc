// SPDX-License-Identifier: Apache-2.0
// The daemon's side of a mover: what it may tell it, and ask. Blocking, with a time limit for each
// call. While it is open, the mover does not end by itself; it must have spoken once within ten
// seconds.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "abi/park.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"

namespace mete::park {

class MoverClient {
 public:
  using Token = std::array<std::uint8_t, 16>;
  struct Status {
    Bytes size;  // pinned now, and the spill file
    Bytes used;  // promised to processes or taken by them
    Bytes goal;  // what the arena is to become
    // The driver's code when pinning has failed last; 0: it has not.
    std::uint32_t pin_error = 0;
  };
  struct TokenStatus {
    Bytes allowed;
    Bytes used;
    Bytes promised;
  };

  // not_found, busy (nobody listens), denied (not ours, or not for us).
  static Result<MoverClient> connect(const std::string& socket, int timeout_ms);

  // Processes of `uid` (and root's) that show the token may give away so much in all.
  Result<void> allow(const Token& token, std::uint32_t uid, Bytes bytes);
  // They may give away no more; what they have there stays theirs.
  Result<void> forbid(const Token& token);
  Result<void> set_arena(Bytes bytes);
  Result<Status> status();
  // not_found: the mover does not know this token.
  Result<TokenStatus> status_of(const Token& token);
  // For a loop that wants to know when the mover is gone.
  int descriptor() const { return socket_.get(); }

 private:
  MoverClient(Fd socket, int timeout_ms) : socket_(std::move(socket)), timeout_ms_(timeout_ms) {}
  // denied: refused as a stranger; busy: no answer in time; io: the mover is gone. After io
  // the connection is of no use any more.
  Result<abi::MoverMessage> ask(abi::MoverMessage message);

  Fd socket_;
  uint32_t asked_ = 0;  // the serial of the last question
  int timeout_ms_;
};

}  // namespace mete::park
