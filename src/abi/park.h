// SPDX-License-Identifier: Apache-2.0
// Parking: the words in the grant file by which a job's runner asks its processes to give their
// memory away and to take it back, and what they say to the mover that keeps the bytes meanwhile.
// Why it is shaped so: docs/adr/0012-parking.md; every byte: docs/formats/park.md.
//
// One order for the whole job, one answer for each process (a slot of the grant file):
//   run      → quiesce  close the gate, let the card come to rest; answer: quiet, or refused
//   quiesce  → move     all are quiet: give the memory to the mover; answer: parked, or refused
//            → run      somebody refused, or time is up: open the gate, nothing has happened
//   move     → back     the bytes are granted again, or somebody could not give its memory away:
//                       take it back; answer: returned, or refused (it is still with the mover)
//   back     → run      all have returned: open the gate
//            → move     one had no room: those that have returned give theirs away once more
// The runner alone gives orders, each with a new number; a process answers the newest.
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

// Why a process cannot be parked, now or ever. As text: docs/formats/park.md.
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
  kForeign = 13,   // memory of other processes is open here: of the driver's checkpoint alone
  kLost = 14,      // the mover is gone that kept its memory
  kSilent = 15,    // the mover does not answer
};
// Reasons that do not stand in the way of the meter.
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
    // Of a process of a job. Every one is answered, in the order in which they were sent.
    kHello = 1,  // token; bytes: how many it will give away in all, at most
    kOut = 2,    // id, bytes; descriptor of the memory: copy it away
    kIn = 3,     // id, bytes; descriptor of new memory: copy it back (the mover keeps its copy)
    kDrop = 4,   // id, or 0 for all: it is not needed any more
    // Of the daemon, which the mover knows by its user.
    kAllow = 16,   // token, uid; bytes: what the job may give away
    kForbid = 17,  // token
    kArena = 18,   // bytes: how large the arena shall be
    kStatus = 19,
    // Answers.
    // id; of kOut: used is how much of it went to disk; of kStatus: bytes is the arena's size, used
    // what is taken, wanted its goal
    kDone = 32,
    kRefused = 33,  // id; reason, detail; bytes: what there is room for
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
  uint32_t serial;  // of what is asked, chosen by who asks; the answer has the same
  uint8_t token[16];
};
static_assert(sizeof(MoverMessage) == 72);
static_assert(offsetof(MoverMessage, id) == 8 && offsetof(MoverMessage, serial) == 52 &&
              offsetof(MoverMessage, token) == 56);

// The socket of a card's mover: FOLDER/ and its UUID as "GPU-8-4-4-4-12".
inline constexpr size_t kMaxMoverFolder = 72;

}  // namespace mete::abi
