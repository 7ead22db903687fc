// SPDX-License-Identifier: Apache-2.0
// What a mover has promised to whom and where each piece of parked memory lies. Pure: no driver, no
// socket, no clock; the mover does what this decides, in one thread.
//
// The daemon allows a token so many bytes. A process shows the token on its connection and says how
// much it will give away at most (hello): from then on that much room is its own, so that a move
// that was begun does not end for want of room. A piece belongs to the connection that gave it
// away; nobody else can name it, and it goes when the connection does. Nothing is readable before
// all of it was written: a piece counts as there when its copy has ended well.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "abi/park.h"
#include "park/extents.h"

namespace mete::park {

using Token = std::array<uint8_t, 16>;
using ConnectionId = uint64_t;

// Why not; with kNoRoom how much there would be room for, with kDriver the code that the driver
// gave or would give.
struct Refusal {
  abi::ParkReason reason = abi::ParkReason::kNone;
  uint32_t detail = 0;
  uint64_t bytes = 0;
};
using Answer = std::optional<Refusal>;  // nothing: done

// Where a piece lies: in the arena, and what found no room there in the spill file.
struct Place {
  std::vector<Extent> memory;
  std::vector<Extent> disk;
};

// How much there is in all, how much of it is promised or taken, and how much is wanted.
struct Figures {
  uint64_t size = 0;
  uint64_t used = 0;
  uint64_t goal = 0;
  uint64_t on_disk = 0;  // of one token
};

class Books {
 public:
  static constexpr std::size_t kMaxTokens = 16384;
  static constexpr uint32_t kMaxConnectionsOfToken = abi::kSlots;  // a process has one
  static constexpr uint32_t kInvalid = 1;                          // CUDA_ERROR_INVALID_VALUE

  explicit Books(uint64_t spill_bytes = 0);

  // ---- the daemon's
  // Again for the same token: the new figures hold from now on; what is promised stays.
  Answer allow(const Token& token, uint32_t uid, uint64_t bytes);
  // No new room and no new pieces under this token. What is kept stays, and can be taken back.
  void forbid(const Token& token);
  void set_goal(uint64_t bytes);
  Figures figures() const;
  // Of one token: allowed, taken, promised, and how much of what is taken lies on disk.
  std::optional<Figures> figures(const Token& token) const;

  // ---- of a process, by its connection
  struct Hello {
    Answer answer;
    bool wait = false;  // no room yet, but the arena is to grow that far
  };
  struct Promise {
    Token token;
    uint32_t uid;  // of the process; 0 may show anybody's token
    uint64_t bytes;
  };
  // Once more on the same connection: a new promise in place of the old one, never less than it
  // keeps. `may_wait`: rather than refuse or go to disk, wait where the arena is to grow far
  // enough.
  Hello hello(ConnectionId connection, const Promise& promise, bool may_wait);
  bool known(ConnectionId connection) const { return connections_.contains(connection); }
  // The piece is being filled until end_out(); `place` stays valid until then.
  Answer begin_out(ConnectionId connection, uint64_t id, uint64_t bytes, const Place** place);
  void end_out(ConnectionId connection, uint64_t id, bool good);
  Answer begin_in(ConnectionId connection, uint64_t id, uint64_t bytes, const Place** place);
  void end_in(ConnectionId connection, uint64_t id);
  // 0: all pieces, and the promise with them. Not while a copy of the connection is under way.
  Answer drop(ConnectionId connection, uint64_t id);
  // The connection is closed. A piece that is being copied goes at the end of its copy.
  void leave(ConnectionId connection);
  // Stops a token as forbid() does: its process does what no process does in good faith.
  void distrust(ConnectionId connection);

  // ---- of the arena
  void add_segment(uint32_t segment, uint64_t bytes) { memory_.add(segment, bytes); }
  // How much must be pinned to reach the goal.
  uint64_t missing() const { return goal_ > memory_.size() ? goal_ - memory_.size() : 0; }
  // A segment beyond the goal that nobody uses and nobody was promised; it is taken out of the
  // books.
  struct Surplus {
    uint32_t segment;
    uint64_t bytes;
  };
  std::optional<Surplus> take_surplus();
  // What was freed in the spill file since it was last asked; its room on disk can go back.
  std::vector<Extent> take_freed_on_disk() { return std::exchange(freed_on_disk_, {}); }
  // Nothing is kept and nothing is promised.
  bool idle() const { return promised_ == 0; }
  // How many bytes nobody was promised.
  uint64_t room() const;

 private:
  struct Account {
    uint32_t uid = 0;
    uint64_t allowed = 0;
    uint64_t promised = 0;
    uint64_t used = 0;
    uint32_t connections = 0;
    bool open = true;  // false: forbidden, and kept for the books of its connections
  };
  struct Piece {
    uint64_t bytes = 0;
    Place place;
    bool whole = false;
    int copies = 0;  // under way
  };
  struct Connection {
    Token token{};
    uint64_t promised = 0;
    uint64_t used = 0;
    bool gone = false;
    std::map<uint64_t, Piece> pieces;
  };

  void set_promise(Connection& connection, uint64_t bytes);
  void free_piece(Connection& connection, std::map<uint64_t, Piece>::iterator piece);
  void settle(ConnectionId connection);  // of one that is gone: what is still held, and its end
  Place take(uint64_t bytes);

  std::map<Token, Account> accounts_;
  std::map<ConnectionId, Connection> connections_;
  Extents memory_;
  Extents disk_;
  std::vector<Extent> freed_on_disk_;
  uint64_t goal_ = 0;
  uint64_t promised_ = 0;  // the sum over all connections; each at least what it uses
};

}  // namespace mete::park
