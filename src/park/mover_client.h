// SPDX-License-Identifier: Apache-2.0
// The daemon's side of a mover: what it may tell it, and ask. Nothing here waits: a question gets a
// number, and its answer comes by hear() with the same one, whenever the mover has got to it. While
// it is open, the mover does not end by itself; it must have spoken once within ten seconds.
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
    // denied: refused as a stranger; exhausted: no room; invalid: refused otherwise; unsupported:
    // the mover speaks another version.
    Result<void> done;
    // Of ask_status(): pinned now, and the spill file. Of one token: what it may give away.
    Bytes size;
    // Promised to processes or taken by them. Of one token: what it has given away.
    Bytes used;
    // What the arena is to become. Of one token: what it was promised.
    Bytes goal;
    // Of one token: how much of what it has given away lies on disk.
    Bytes on_disk;
    // The driver's code when pinning has failed last; 0: it has not.
    std::uint32_t pin_error = 0;
  };

  // not_found, busy (nobody listens, or too many wait there), denied (not ours, or not for us).
  static Result<MoverClient> connect(const std::string& socket);

  // Each: busy: the mover does not listen at the moment, nothing was asked; io: it is gone.
  // Processes of `uid` (and root's) that show the token may give away so much in all.
  Result<Question> allow(const Token& token, std::uint32_t uid, Bytes bytes);
  // They may give away no more; what they have there stays theirs.
  Result<Question> forbid(const Token& token);
  Result<Question> set_arena(Bytes bytes);
  Result<Question> ask_status();
  Result<Question> ask_status(const Token& token);

  // The next answer; nothing: none has come. io: the mover is gone, and the connection of no use.
  Result<std::optional<Answer>> hear();
  // Readable when there may be something to hear.
  int descriptor() const { return socket_.get(); }

 private:
  explicit MoverClient(Fd socket) : socket_(std::move(socket)) {}
  Result<Question> ask(abi::MoverMessage message);

  Fd socket_;
  Question asked_ = 0;  // the last one
};

}  // namespace mete::park
