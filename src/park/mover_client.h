// SPDX-License-Identifier: Apache-2.0
// The daemon's side of a mover: its orders and questions. Nothing here waits: a question gets a
// number, and its answer arrives through hear() with that number, once the mover has processed it.
// While the connection is open, the mover does not end by itself; a request must be sent within ten
// seconds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "abi/park.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"

namespace mete::park {

class MoverClient {
 public:
  using Token = std::array<std::uint8_t, 16>;
  using Question = std::uint32_t;
  struct Answer {
    Question question = 0;
    // denied: refused as a stranger; exhausted: no room; invalid: refused for another reason;
    // unsupported: the mover speaks another protocol version.
    Result<void> done;
    // For ask_status(): pinned now, and the spill file. For one token: what it may give away.
    Bytes size;
    // Promised to processes or taken by them. For one token: what it has given away.
    Bytes used;
    // The target size of the arena. For one token: what it was promised.
    Bytes goal;
    // For one token: how much of what it has given away lies on disk.
    Bytes on_disk;
    // The driver's code if the last pinning failed; 0: it did not.
    std::uint32_t pin_error = 0;
  };

  // not_found, busy (no process listens, or too many clients wait there), denied (not ours, or not
  // for us).
  static Result<MoverClient> connect(const std::string& socket);

  // For each: busy: the mover does not read at the moment, nothing was sent; io: it is gone.
  // Processes of `uid` (and root's) that show the token may give away this much in all.
  Result<Question> allow(const Token& token, std::uint32_t uid, Bytes bytes);
  // They may give away no more; what they have stored stays theirs.
  Result<Question> forbid(const Token& token);
  Result<Question> set_arena(Bytes bytes);
  Result<Question> ask_status();
  Result<Question> ask_status(const Token& token);

  // The next answer; nullopt: none has arrived. io: the mover is gone, and the connection useless.
  Result<std::optional<Answer>> hear();
  // Readable when there may be an answer.
  int descriptor() const { return socket_.get(); }

 private:
  explicit MoverClient(Fd socket) : socket_(std::move(socket)) {}
  Result<Question> ask(abi::MoverMessage message);

  Fd socket_;
  Question asked_ = 0;  // the last one
};

}  // namespace mete::park
