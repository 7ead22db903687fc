// SPDX-License-Identifier: Apache-2.0
// See repair.h. SQLite's write-ahead log (https://sqlite.org/fileformat2.html#walformat): a header
// of 32 bytes, then frames of 24 bytes and a page. Each checksum covers all bytes before it, so
// that one flipped bit makes SQLite ignore every frame after it.
#include <cstdint>

#include "store/repair.h"

namespace mete::store {

namespace {

constexpr std::size_t kHeader = 32, kFrameHeader = 24, kPage = 4096;
constexpr std::size_t kFrame = kFrameHeader + kPage;
constexpr std::uint32_t kMagic = 0x377f0682;  // the last bit: sums of big-endian words

std::uint32_t big(const std::string& text, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(text[at + i]);
  return value;
}

void put_big(std::string& text, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) text[at + i] = static_cast<char>(value >> (24 - 8 * i));
}

struct Sum {
  std::uint32_t first = 0, second = 0;
  bool big_endian = false;

  void add(const std::string& text, std::size_t at, std::size_t bytes) {
    const auto word = [&](std::size_t from) {
      const std::uint32_t value = big(text, from);
      return big_endian ? value : __builtin_bswap32(value);
    };
    for (std::size_t i = at; i < at + bytes; i += 8) {
      first += word(i) + second;
      second += word(i + 4) + first;
    }
  }
};

std::uint64_t salt_at(const std::string& log, std::size_t at) {
  return std::uint64_t{big(log, at)} << 32 | big(log, at + 4);
}

void put_salt(std::string& log, std::size_t at, std::uint64_t salt) {
  put_big(log, at, static_cast<std::uint32_t>(salt >> 32));
  put_big(log, at + 4, static_cast<std::uint32_t>(salt));
}

}  // namespace

std::string with_new_checksums(std::string log) {
  if (log.size() < kHeader + kFrame) return "";
  const std::size_t frames = (log.size() - kHeader) / kFrame;
  const auto frame_salt = [&](std::size_t i) { return salt_at(log, kHeader + i * kFrame + 8); };
  // Frames of this log have its salt; frames behind them belong to an earlier log. Either place may
  // be the damaged one.
  std::uint64_t salt = salt_at(log, 16);
  if (frames > 1 && frame_salt(0) != salt && frame_salt(0) == frame_salt(1)) salt = frame_salt(0);
  std::size_t used = 0;
  while (used < frames &&
         (frame_salt(used) == salt || (used + 1 < frames && frame_salt(used + 1) == salt)))
    ++used;
  if ((big(log, 0) & ~1u) != kMagic) put_big(log, 0, kMagic);
  put_big(log, 4, 3007000);
  put_big(log, 8, kPage);
  put_salt(log, 16, salt);
  Sum sum;
  sum.big_endian = (big(log, 0) & 1) != 0;
  const auto put_sum = [&](std::size_t at) {
    put_big(log, at, sum.first);
    put_big(log, at + 4, sum.second);
  };
  sum.add(log, 0, 24);
  put_sum(24);
  for (std::size_t i = 0; i < used; ++i) {
    const std::size_t at = kHeader + i * kFrame;
    put_salt(log, at + 8, salt);
    sum.add(log, at, 8);
    sum.add(log, at + kFrameHeader, kPage);
    put_sum(at + 16);
  }
  log.resize(kHeader + used * kFrame);
  return log;
}

}  // namespace mete::store
