// SPDX-License-Identifier: Apache-2.0
// The readings file: the last readings of the daemon's NVML helper, for the runners of jobs, so
// that not every runner calls the driver. Version 1.0; every byte is in docs/formats/readings.md.
//
// One writer, any number of readers with read-only access. The sequence word is odd while the
// writer writes; a reader that sees it odd, or changed, has torn bytes and reads again.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mete::abi {

inline constexpr char kReadingsMagic[8] = {'M', 'E', 'T', 'E', 'R', 'E', 'A', 'D'};
inline constexpr uint16_t kReadingsMajor = 1;
inline constexpr uint16_t kReadingsMinor = 0;
inline constexpr uint32_t kReadingsCards = 32;
inline constexpr uint32_t kReadingsProcesses = 4096;

struct ReadingsCard {
  static constexpr uint32_t kLost = 1;             // nothing below is known
  static constexpr uint32_t kTotalKnown = 2;       // total_bytes is valid
  static constexpr uint32_t kFreeKnown = 4;        // free_bytes is valid
  static constexpr uint32_t kUsedKnown = 8;        // used_bytes is valid
  static constexpr uint32_t kProcessesKnown = 16;  // every process on the card is in the list
  uint8_t uuid[16];
  uint32_t index;
  uint32_t flags;
  uint64_t total_bytes;
  uint64_t free_bytes;
  uint64_t used_bytes;
};
static_assert(sizeof(ReadingsCard) == 48 && offsetof(ReadingsCard, index) == 16 &&
              offsetof(ReadingsCard, flags) == 20 && offsetof(ReadingsCard, total_bytes) == 24 &&
              offsetof(ReadingsCard, free_bytes) == 32 && offsetof(ReadingsCard, used_bytes) == 40);

struct ReadingsProcess {
  static constexpr uint32_t kUsedKnown = 1;
  uint32_t pid;   // in the pid namespace of the writer
  uint16_t card;  // position in the list of cards
  uint16_t flags;
  uint64_t used_bytes;
};
static_assert(sizeof(ReadingsProcess) == 16 && offsetof(ReadingsProcess, card) == 4 &&
              offsetof(ReadingsProcess, flags) == 6 && offsetof(ReadingsProcess, used_bytes) == 8);

// The part that the sequence word guards.
struct ReadingsBody {
  uint64_t at_ns;  // CLOCK_MONOTONIC when the reading began; 0: none yet
  uint32_t card_count;
  uint32_t process_count;
  ReadingsCard cards[kReadingsCards];
  ReadingsProcess processes[kReadingsProcesses];
};
static_assert(offsetof(ReadingsBody, card_count) == 8 && offsetof(ReadingsBody, cards) == 16 &&
              offsetof(ReadingsBody, processes) == 16 + 48 * kReadingsCards);

struct Readings {
  char magic[8];
  uint16_t major;
  uint16_t minor;
  uint32_t file_bytes;
  uint8_t boot_id[16];
  uint64_t pid_namespace;  // inode of the writer's; 0: unknown
  std::atomic<uint64_t> sequence;
  uint8_t unused[16];
  ReadingsBody body;
};
static_assert(offsetof(Readings, major) == 8 && offsetof(Readings, minor) == 10 &&
              offsetof(Readings, file_bytes) == 12 && offsetof(Readings, boot_id) == 16 &&
              offsetof(Readings, pid_namespace) == 32 && offsetof(Readings, sequence) == 40 &&
              offsetof(Readings, unused) == 48 && offsetof(Readings, body) == 64);
static_assert(sizeof(Readings) == 64 + sizeof(ReadingsBody) && sizeof(Readings) == 67152);

}  // namespace mete::abi
