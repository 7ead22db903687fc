// SPDX-License-Identifier: Apache-2.0
// The grant file: what a job may hold, shared by its processes, its launcher and the daemon.
// Version 1.3.
//
// One file per job and attempt, mapped shared by all of them. It holds no pointer and no lock.
// Quantities are in units of 64 KiB inside the packed words and in bytes everywhere else. account.h
// has the changes of the words, docs/formats/grant.md describes every byte, and
// docs/adr/0004-grant-protocol.md gives the reasons.
//
// The job's user can write this file. A process that runs as another user must not trust it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mete::abi {

inline constexpr char kGrantMagic[8] = {'M', 'E', 'T', 'E', 'G', 'R', 'N', 'T'};
inline constexpr uint16_t kGrantMajor = 1;
inline constexpr uint16_t kGrantMinor = 3;

// Features, in the half that may be ignored.
inline constexpr uint64_t kParkable = 1ull << 32;  // its processes listen to park_order (park.h)
inline constexpr uint64_t kGrowing = 1ull << 33;   // the limits of its accounts move, up to the
                                                   // ceiling

inline constexpr uint32_t kMaxCards = 16;
inline constexpr uint32_t kMaxParts = 64;
inline constexpr uint32_t kSlots = 1024;
inline constexpr uint32_t kMaxExports = 256;
inline constexpr uint32_t kMaxNamespaces =
    15;  // index 15 in an owner word: a namespace we could not register

inline constexpr uint64_t kUnitBytes = 64 * 1024;
inline constexpr uint64_t kGranuleBytes = 2 * 1024 * 1024;  // what the driver takes at a time
inline constexpr uint64_t kGranuleUnits = kGranuleBytes / kUnitBytes;

// Held back in every process that has a context, besides the context itself: room for what the
// driver takes unasked (lazily loaded code, printf buffers). One granule of it is the spare slab of
// small blocks.
inline constexpr uint64_t kReserveBytes = 60 * 1024 * 1024;
// How far the charge stays ahead of NVML's reading: once the reserve is used up, and after its
// unneeded part has been given back (reserve.h).
inline constexpr uint64_t kHeadroomBytes = 8 * 1024 * 1024;

constexpr uint64_t units_for(uint64_t bytes) { return (bytes + kUnitBytes - 1) / kUnitBytes; }
constexpr uint64_t round_to_granule(uint64_t bytes) {
  return (bytes + kGranuleBytes - 1) / kGranuleBytes * kGranuleBytes;
}

using Word = std::atomic<uint64_t>;
static_assert(sizeof(Word) == 8 && Word::is_always_lock_free);

// ---- packed words -------------------------------------------------------------------------------

// The total of one account: how much is charged, and which slot made the last change with which
// sequence number.
struct TotalWord {
  uint64_t units;  // 26 bits: 4 TiB of a card
  uint32_t slot;   // 10 bits
  uint32_t seq;    // 28 bits
  static constexpr TotalWord unpack(uint64_t w) {
    return {w >> 38, static_cast<uint32_t>(w >> 28) & 0x3ff, static_cast<uint32_t>(w) & 0xfffffff};
  }
  constexpr uint64_t pack() const {
    return units << 38 | static_cast<uint64_t>(slot) << 28 | (seq & 0xfffffff);
  }
};

// What a slot is about to do (or just did): the charge of `target` after change `seq`.
struct IntentWord {
  uint64_t units;   // 26 bits
  uint32_t target;  // 10 bits
  uint32_t seq;     // 28 bits
  static constexpr IntentWord unpack(uint64_t w) {
    return {w >> 38, static_cast<uint32_t>(w >> 28) & 0x3ff, static_cast<uint32_t>(w) & 0xfffffff};
  }
  constexpr uint64_t pack() const {
    return units << 38 | static_cast<uint64_t>(target) << 28 | (seq & 0xfffffff);
  }
};

// The charge of one slot on one card, and the number of the change that made it.
struct ChargeWord {
  uint64_t units;  // 26 bits
  uint32_t seq;    // 28 bits
  static constexpr ChargeWord unpack(uint64_t w) {
    return {w >> 38, static_cast<uint32_t>(w) & 0xfffffff};
  }
  constexpr uint64_t pack() const { return units << 38 | (seq & 0xfffffff); }
};
inline constexpr uint64_t kMaxUnits = (1ull << 26) - 1;
inline constexpr uint32_t kSeqMask = 0xfffffff;

// The unsettled part of a slot's charge on one card, and the reserve (reserve.h).
struct PendingWord {
  bool open;       // 1 bit: the reserve may be lent
  uint32_t left;   // 12 bits: units of the reserve that are charged, while it may be lent
  uint64_t units;  // 32 bits: reserved for driver calls that have not returned
  static constexpr PendingWord unpack(uint64_t w) {
    return {(w >> 44 & 1) != 0, static_cast<uint32_t>(w >> 32) & 0xfff, w & 0xffffffff};
  }
  constexpr uint64_t pack() const {
    return static_cast<uint64_t>(open) << 44 | static_cast<uint64_t>(left & 0xfff) << 32 |
           (units & 0xffffffff);
  }
};
static_assert(units_for(kReserveBytes) <= 0xfff);

// The owner of a slot. 0 = free. A pid alone can be reused; a pid with its start time and the
// program that it runs cannot.
struct OwnerWord {
  static constexpr uint64_t kStartMask = (1ull << 26) - 1;
  uint32_t pid;         // 22 bits: Linux pids stay below 4,194,304
  uint32_t name_space;  // 4 bits: index into GrantHeader::namespaces, 15 = unknown
  uint64_t start;       // 26 bits of clock ticks since boot: they repeat after about a week
  uint32_t image;       // 12 bits: changes at exec; 0 = unknown
  static constexpr OwnerWord unpack(uint64_t w) {
    return {static_cast<uint32_t>(w >> 42), static_cast<uint32_t>(w >> 38) & 0xf,
            (w >> 12) & kStartMask, static_cast<uint32_t>(w) & 0xfff};
  }
  constexpr uint64_t pack() const {
    return static_cast<uint64_t>(pid & 0x3fffff) << 42 |
           static_cast<uint64_t>(name_space & 0xf) << 38 | (start & kStartMask) << 12 |
           (image & 0xfff);
  }
};

// ---- the file -----------------------------------------------------------------------------------

struct GrantCard {
  uint8_t uuid[16];
  uint64_t guarantee_bytes;  // reserved for the job; equals the limit unless the request may grow
  uint64_t total_bytes;      // the physical card, as NVML reports it
  uint64_t context_first_bytes;  // measured: the first context of a process on this card
  uint64_t context_more_bytes;   // measured: every further one of that process
  Word free_bytes;               // what the card has free, published by the sampler
  Word published_ns;             // CLOCK_MONOTONIC of that reading; 0 = never
  uint64_t ceiling_bytes;  // the size that the program sees and may grow to; 0 in files of 1.1
  // For growing grants, which have one part. A process that needs more than its account's limit
  // raises `wanted_bytes` and counts an ask; the runner takes the wish and publishes the number of
  // the last ask that it has answered. Both counts are futexes.
  Word wanted_bytes;  // the largest total that was asked for since the runner last looked
  Word asks;
  Word answers;         // the number of the last ask that is answered
  Word answered_bytes;  // the total that was asked for then
  uint8_t unused[24];
};
static_assert(sizeof(GrantCard) == 128);
static_assert(offsetof(GrantCard, guarantee_bytes) == 16 && offsetof(GrantCard, free_bytes) == 48 &&
              offsetof(GrantCard, ceiling_bytes) == 64 && offsetof(GrantCard, answers) == 88);

struct GrantHeader {
  char magic[8];
  uint16_t major;
  uint16_t minor;
  uint32_t header_bytes;
  uint64_t features;  // low half: a reader that does not know a set bit must refuse; high half: may
                      // ignore
  uint64_t file_bytes;
  uint8_t boot_id[16];
  char job[32];
  uint32_t attempt;
  uint32_t uid;
  uint32_t card_count;
  uint32_t part_count;
  uint32_t slot_count;
  uint32_t export_count;
  uint64_t header_check;  // FNV-1a of the fixed fields above and of each card's fixed fields
  Word last_reap_ns;      // CLOCK_MONOTONIC when a dead process's bytes were last given back
  Word escapes;           // processes of the job ever seen by NVML without a slot of their own
  Word slot_high;         // no slot at or above this was ever claimed: bounds every scan
  Word namespaces[kMaxNamespaces];
  Word escape_pid;  // the last such process, and the most it held
  Word escape_bytes;
  Word park_order;         // ParkOrder
  Word park_answers;       // counts the answers; a futex for the runner that waits for them
  uint8_t park_token[16];  // shown to movers by the processes of the job
  char movers[72];         // the folder of their sockets; "": none
  Word grower;             // OwnerWord of the runner that answers asks; 0: none does
  Word park_knocks;        // counts calls that came to a closed gate
  Word park_disk_bytes;    // the part of the parked bytes that movers have put on disk
  Word driver_refusals;    // how often the driver had no memory although the grant had room
  uint8_t unused[1640];
  GrantCard cards[kMaxCards];
};
static_assert(sizeof(GrantHeader) == 4096);
static_assert(offsetof(GrantHeader, header_check) == 104 &&
              offsetof(GrantHeader, namespaces) == 136);
static_assert(offsetof(GrantHeader, grower) == 376 && offsetof(GrantHeader, cards) == 2048);

// One budget: a card, or a part of a card if the processes of a job have parts of their own
// (--procs).
struct Account {
  Word limit_bytes;  // changes in growing grants (set_limit in account.h)
  Word total;        // TotalWord
  Word peak_units;   // highest total plus excess ever admitted
  Word
      excess_units;  // what NVML sees beyond the charges; recomputed from the slots, never added to
  Word refusals;
  Word escaped_units;  // held by processes of the job that have no meter
  uint8_t unused[16];
};
static_assert(sizeof(Account) == 64);

struct SlotCard {
  Word intent;        // IntentWord; written by the slot's owner only
  Word charge;        // ChargeWord
  Word pending;       // PendingWord; its units are a hint for processes that are refused
  Word nvml_bytes;    // NVML's last figure for this process
  Word excess_units;  // how far that exceeds the charge, seen twice in a row; written by the
                      // sampler only
  Word unseen_units;  // charged, but not in NVML's figure (managed memory)
};
static_assert(sizeof(SlotCard) == 48);

// The role of a slot's owner in the job.
enum class SlotRole : uint64_t {
  kProcess = 0,
  kHelper = 1,  // of its runner: changes the accounts, holds nothing, is never parked
};

struct Slot {
  Word owner;  // OwnerWord
  Word part;
  Word park;         // ParkAnswer
  Word nvml_ns;      // when nvml_bytes was read
  Word lease;        // the owner that holds a lock on byte sizeof(Grant) + slot of the file
  Word unparkable;   // a bit for each ParkReason that currently prevents parking
  Word moved_bytes;  // bytes that a mover keeps for it
  Word role;         // SlotRole
  SlotCard cards[kMaxCards];
};
static_assert(sizeof(Slot) == 832);

// Memory that a process made available to others. Its owner stays charged while a process that
// opened it lives.
struct Export {
  Word state;  // ExportWord
  Word key;    // identifies the handle (hash); readers trust it only if the state is live and
               // unchanged around the read
  Word owner;  // owner word of the exporting process
  Word openers[kSlots / 64];
  uint8_t unused[40];
};
static_assert(sizeof(Export) == 192);

struct ExportWord {
  enum Kind : uint32_t { kFree = 0, kFilling = 1, kLive = 2, kFreedByOwner = 3 };
  uint64_t units;       // 26 bits
  uint32_t slot;        // 10 bits
  uint32_t card;        // 4 bits
  uint32_t kind;        // 2 bits
  uint32_t generation;  // 22 bits
  static constexpr ExportWord unpack(uint64_t w) {
    return {w >> 38, static_cast<uint32_t>(w >> 28) & 0x3ff, static_cast<uint32_t>(w >> 24) & 0xf,
            static_cast<uint32_t>(w >> 22) & 3, static_cast<uint32_t>(w) & 0x3fffff};
  }
  constexpr uint64_t pack() const {
    return units << 38 | static_cast<uint64_t>(slot & 0x3ff) << 28 |
           static_cast<uint64_t>(card & 0xf) << 24 | static_cast<uint64_t>(kind & 3) << 22 |
           (generation & 0x3fffff);
  }
};

struct Grant {
  GrantHeader header;
  Account accounts[kMaxParts][kMaxCards];
  Export exports[kMaxExports];
  Slot slots[kSlots];
};
static_assert(offsetof(Grant, accounts) == 4096);
static_assert(offsetof(Grant, exports) == 4096 + 65536);
static_assert(offsetof(Grant, slots) == 4096 + 65536 + 49152);
static_assert(sizeof(Grant) == 4096 + 65536 + 49152 + 832 * 1024);

// ---- making and checking ------------------------------------------------------------------------

// What a launcher knows when it makes a grant file.
struct GrantSpec {
  const char* job = "";
  uint32_t attempt = 1;
  uint32_t uid = 0;
  uint8_t boot_id[16] = {};
  uint32_t part_count = 1;
  bool parkable = false;
  bool growing = false;         // accounts begin at the guarantee; one part only
  const char* movers = "";      // the folder of the movers' sockets
  uint8_t park_token[16] = {};  // what the job shows to them
  // The cards, without the words that change while the job runs. ceiling_bytes is the limit of the
  // whole job: it is divided evenly between the parts, rounded down to a granule.
  const GrantCard* cards = nullptr;
  uint32_t card_count = 0;
};

enum class GrantCheck { kOk, kNotAGrant, kNewerVersion, kTruncated, kCorrupt };

constexpr uint64_t fnv1a(const void* data, size_t bytes, uint64_t hash = 0xcbf29ce484222325ull) {
  const auto* p = static_cast<const unsigned char*>(data);
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ p[i]) * 0x100000001b3ull;
  return hash;
}

inline uint64_t grant_header_check(const GrantHeader& header) {
  uint64_t hash = fnv1a(&header, offsetof(GrantHeader, header_check));
  for (const GrantCard& card : header.cards)
    hash = fnv1a(&card, offsetof(GrantCard, free_bytes), hash);
  return hash;
}

// Fills `memory` (sizeof(Grant) zero bytes) with a fresh grant. Returns false when the spec is out
// of range.
inline bool init_grant(void* memory, const GrantSpec& spec) {
  if (spec.card_count > kMaxCards || spec.part_count == 0 || spec.part_count > kMaxParts)
    return false;
  if (spec.growing && spec.part_count > 1) return false;
  auto& grant = *static_cast<Grant*>(memory);
  GrantHeader& header = grant.header;
  header.major = kGrantMajor;
  header.minor = kGrantMinor;
  header.header_bytes = sizeof(GrantHeader);
  header.file_bytes = sizeof(Grant);
  header.features = (spec.parkable ? kParkable : 0) | (spec.growing ? kGrowing : 0);
  for (size_t i = 0; i + 1 < sizeof(header.movers) && spec.movers[i] != 0; ++i)
    header.movers[i] = spec.movers[i];
  for (int i = 0; i < 16; ++i) header.park_token[i] = spec.park_token[i];
  for (int i = 0; i < 16; ++i) header.boot_id[i] = spec.boot_id[i];
  for (size_t i = 0; i + 1 < sizeof(header.job) && spec.job[i] != 0; ++i)
    header.job[i] = spec.job[i];
  header.attempt = spec.attempt;
  header.uid = spec.uid;
  header.card_count = spec.card_count;
  header.part_count = spec.part_count;
  header.slot_count = kSlots;
  header.export_count = kMaxExports;
  for (uint32_t c = 0; c < spec.card_count; ++c) {
    const GrantCard& from = spec.cards[c];
    GrantCard& to = header.cards[c];
    for (int i = 0; i < 16; ++i) to.uuid[i] = from.uuid[i];
    to.guarantee_bytes = from.guarantee_bytes;
    to.total_bytes = from.total_bytes;
    to.context_first_bytes = from.context_first_bytes;
    to.context_more_bytes = from.context_more_bytes;
    uint64_t limit = from.ceiling_bytes;
    if (spec.part_count > 1) limit = limit / spec.part_count / kGranuleBytes * kGranuleBytes;
    if (units_for(limit) > kMaxUnits) return false;
    to.ceiling_bytes = limit;
    if (spec.growing && from.guarantee_bytes < limit) limit = from.guarantee_bytes;
    for (uint32_t p = 0; p < spec.part_count; ++p) grant.accounts[p][c].limit_bytes = limit;
  }
  for (int i = 0; i < 8; ++i) header.magic[i] = kGrantMagic[i];
  header.header_check = grant_header_check(header);
  return true;
}

// Checks the first bytes of a mapping of `bytes` bytes. Reads nothing beyond them, trusts nothing
// in them.
inline GrantCheck check_grant(const void* memory, size_t bytes) {
  if (bytes < sizeof(GrantHeader)) {
    if (bytes < sizeof(kGrantMagic)) return GrantCheck::kNotAGrant;
  }
  const auto* raw = static_cast<const char*>(memory);
  for (int i = 0; i < 8; ++i)
    if (raw[i] != kGrantMagic[i]) return GrantCheck::kNotAGrant;
  if (bytes < sizeof(GrantHeader)) return GrantCheck::kTruncated;
  const auto& header = *static_cast<const GrantHeader*>(memory);
  if (header.major != kGrantMajor) return GrantCheck::kNewerVersion;
  if ((header.features & 0xffffffffu) != 0) return GrantCheck::kNewerVersion;
  if (header.header_check != grant_header_check(header)) return GrantCheck::kCorrupt;
  if (header.header_bytes != sizeof(GrantHeader) || header.file_bytes < sizeof(Grant) ||
      header.card_count > kMaxCards || header.part_count == 0 || header.part_count > kMaxParts ||
      header.slot_count != kSlots || header.export_count != kMaxExports)
    return GrantCheck::kCorrupt;
  if (bytes < sizeof(Grant)) return GrantCheck::kTruncated;
  return GrantCheck::kOk;
}

}  // namespace mete::abi
