// SPDX-License-Identifier: Apache-2.0
// What a mover has promised to which process, and where each piece of parked memory lies. Pure: no
// driver, no socket, no clock; the mover carries out these decisions, in one thread.
//
// The daemon allows a number of bytes to a token. A process shows the token on its connection and
// says how much it will give away at most (hello): from then on that much room is reserved for it,
// so that a move that has begun does not fail for want of room. A piece belongs to the connection
// that gave it away; no other connection can name it, and it is dropped with its connection.
// Nothing is readable before all of it was written: a piece counts as present when its copy has
// succeeded.
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

// The reason; for kNoRoom how much there would be room for, for kDriver the code that the driver
// returned or would return.
struct Refusal {
  abi::ParkReason reason = abi::ParkReason::kNone;
  uint32_t detail = 0;
  uint64_t bytes = 0;
};
using Answer = std::optional<Refusal>;  // nothing: done

// Where a piece lies: in the arena, and the part that does not fit there in the spill file.
struct Place {
  std::vector<Extent> memory;
  std::vector<Extent> disk;
};

// How much there is in all, how much of it is promised or taken, and the goal.
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

  // ---- by the daemon

  // For a known token the new figures replace the old ones; promises stay.
  Answer allow(const Token& token, uint32_t uid, uint64_t bytes);
  // No new promises and no new pieces under this token. Stored pieces stay, and can be taken back.
  void forbid(const Token& token);
  void set_goal(uint64_t bytes);
  Figures figures() const;
  // For one token: allowed, used, promised, and how much of the used bytes lies on disk.
  std::optional<Figures> figures(const Token& token) const;

  // ---- by a process, on its connection
  struct Hello {
    Answer answer;
    bool wait = false;  // no room yet, but the arena is to grow that far
  };
  struct Promise {
    Token token;
    uint32_t uid;  // of the process; 0 may show any user's token
    uint64_t bytes;
  };
  // Repeated on a connection: replaces the promise, which never falls below what is stored.
  // `may_wait`: wait, rather than refuse or go to disk, if the arena is to grow far enough.
  Hello hello(ConnectionId connection, const Promise& promise, bool may_wait);
  bool known(ConnectionId connection) const { return connections_.contains(connection); }
  // The piece is being filled until end_out(); `place` stays valid until then.
  Answer begin_out(ConnectionId connection, uint64_t id, uint64_t bytes, const Place** place);
  void end_out(ConnectionId connection, uint64_t id, bool good);
  Answer begin_in(ConnectionId connection, uint64_t id, uint64_t bytes, const Place** place);
  void end_in(ConnectionId connection, uint64_t id);
  // 0: all pieces, and the promise with them. Not while a copy of the connection is under way.
  Answer drop(ConnectionId connection, uint64_t id);
  // The connection is closed. A piece that is being copied is dropped at the end of its copy.
  void leave(ConnectionId connection);
  // Stops a token as forbid() does: its process did something that no correct process does.
  void distrust(ConnectionId connection);

  // ---- for the arena
  void add_segment(uint32_t segment, uint64_t bytes) { memory_.add(segment, bytes); }
  // How much must be pinned to reach the goal.
  uint64_t missing() const { return goal_ > memory_.size() ? goal_ - memory_.size() : 0; }
  // A segment beyond the goal that is neither used nor promised; it is removed from the books.
  struct Surplus {
    uint32_t segment;
    uint64_t bytes;
  };
  std::optional<Surplus> take_surplus();
  // Extents of the spill file that were freed since the last call; their disk space can be
  // released.
  std::vector<Extent> take_freed_on_disk() { return std::exchange(freed_on_disk_, {}); }
  // Nothing is stored and nothing is promised.
  bool idle() const { return promised_ == 0; }
  // How many bytes are not promised.
  uint64_t room() const;

 private:
  struct Account {
    uint32_t uid = 0;
    uint64_t allowed = 0;
    uint64_t promised = 0;
    uint64_t used = 0;
    uint32_t connections = 0;
    bool open = true;  // false: forbidden, and kept for its connections
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
  void settle(ConnectionId connection);  // of a connection that is gone: frees what is not being
                                         // copied, and ends it
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
