// SPDX-License-Identifier: Apache-2.0
// Parking: the words in the grant file by which a job's runner orders its processes to give their
// memory away and to take it back, and the messages to the mover that holds the bytes meanwhile.
// The reasons are in docs/adr/0012-parking.md, every byte is in docs/formats/park.md.
//
// One order for the whole job, one answer for each process (a slot of the grant file):
//   run      → quiesce  close the gate, let the card come to rest; answer: quiet, or refused
//   quiesce  → move     all are quiet: give the memory to the mover; answer: parked, or refused
//            → run      a process refused, or time is up: open the gate, nothing has changed
//   move     → back     the bytes are granted again, or a process could not give its memory away:
//                       take it back; answer: returned, or refused (it is still with the mover)
//   back     → run      all have returned: open the gate
//            → move     one had no room: processes that have returned give their memory away again
// Only the runner gives orders, each with a new number; a process answers the newest.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/grant.h"

namespace mete::abi {

// The order, in GrantHeader::park_order. Its low 32 bits are the futex on which processes sleep: a
// new order always changes them.
struct ParkOrder {
  enum Kind : uint32_t { kRun = 0, kQuiesce = 1, kMove = 2, kBack = 3 };
  uint64_t number;  // 56 bits, from 1
  uint32_t kind;    // 8 bits
  static constexpr ParkOrder unpack(uint64_t w) {
    return {w >> 8, static_cast<uint32_t>(w) & 0xff};
  }
  constexpr uint64_t pack() const { return number << 8 | (kind & 0xff); }
};

// Why a process cannot be parked, now or ever. The texts are in docs/formats/park.md.
enum class ParkReason : uint32_t {
  kNone = 0,
  kBusy = 1,       // a call into the driver did not come back in time
  kWork = 2,       // the card did not finish its work in time
  kCapture = 3,    // a stream is being captured
  kManaged = 4,    // managed memory
  kShared = 5,     // memory that other processes have open, or opened from them
  kMulticast = 6,  // multicast objects
  kGraphics = 7,   // memory of a graphics interface
  kNoMover = 8,    // no mover answers
  kNoRoom = 9,     // the mover's arena, or the card, has no room
  kDriver = 10,    // the driver has refused a step; ParkAnswer::detail is its code
  kSticky = 11,    // a context has failed before
  kThread = 12,    // no thread could be started
  kForeign = 13,   // memory of other processes is open here: only for the driver's checkpoint
  kLost = 14,      // the mover that held its memory is gone
  kSilent = 15,    // the mover does not answer
};
// Reasons that prevent the driver's checkpoint but not parking by the meter.
inline constexpr uint64_t kOnlyOfTheDriver = 1ull << static_cast<int>(ParkReason::kForeign);

// The answer of a process, in Slot::park. 0: it has not answered yet.
struct ParkAnswer {
  enum Kind : uint32_t { kNone = 0, kQuiet = 1, kParked = 2, kReturned = 3, kRefused = 4 };
  uint64_t number;  // 32 bits: the low ones of the order's
  uint32_t detail;  // 16 bits
  uint32_t reason;  // 8 bits: ParkReason
  uint32_t kind;    // 8 bits
  static constexpr ParkAnswer unpack(uint64_t w) {
    return {w >> 32, static_cast<uint32_t>(w >> 16) & 0xffff, static_cast<uint32_t>(w >> 8) & 0xff,
            static_cast<uint32_t>(w) & 0xff};
  }
  constexpr uint64_t pack() const {
    return number << 32 | static_cast<uint64_t>(detail & 0xffff) << 16 |
           static_cast<uint64_t>(reason & 0xff) << 8 | (kind & 0xff);
  }
};

// ---- the mover: a SOCK_SEQPACKET socket, messages of one size, descriptors beside some of them

inline constexpr uint32_t kMoverMagic = 0x4d455445;  // "METE"
inline constexpr uint16_t kMoverVersion = 1;

struct MoverMessage {
  enum Kind : uint16_t {
    // From a process of a job. Each is answered, in the order in which they were sent.
    kHello = 1,  // token; bytes: how many it will give away in all, at most
    kOut = 2,    // id, bytes; descriptor of the memory: copy it away
    kIn = 3,     // id, bytes; descriptor of new memory: copy it back (the mover keeps its copy)
    kDrop = 4,   // id, or 0 for all: the copy is not needed any more
    // From the daemon, which the mover recognises by its user.
    kAllow = 16,   // token, uid; bytes: how much the job may give away
    kForbid = 17,  // token
    kArena = 18,   // bytes: the wanted size of the arena
    kStatus = 19,
    // Answers. id; for kOut: `used` is how much of it went to disk; for kStatus: `bytes` is the
    // size of the arena, `used` how much of it is taken, `wanted` its target size.
    kDone = 32,
    kRefused = 33,  // id; reason, detail; bytes: how much there is room for
  };
  uint32_t magic;
  uint16_t version;
  uint16_t kind;
  uint64_t id;  // of a piece of memory, chosen by the process; not 0
  uint64_t bytes;
  uint64_t used;
  uint64_t wanted;
  uint32_t reason;  // ParkReason
  uint32_t detail;
  uint32_t uid;
  uint32_t serial;  // of the request, chosen by its sender; the answer repeats it
  uint8_t token[16];
};
static_assert(sizeof(MoverMessage) == 72);
static_assert(offsetof(MoverMessage, id) == 8 && offsetof(MoverMessage, serial) == 52 &&
              offsetof(MoverMessage, token) == 56);

// The socket of a card's mover: FOLDER/ and its UUID as "GPU-8-4-4-4-12".
inline constexpr size_t kMaxMoverFolder = 72;

}  // namespace mete::abi
