// SPDX-License-Identifier: Apache-2.0
// See checksum.h. The steps of MurmurHash64A (Austin Appleby, public domain): each is reversible,
// so that two different words never become equal.
#include "base/checksum.h"

#include <bit>
#include <cstring>

namespace mete::base {

namespace {

constexpr std::uint64_t kFactor = 0xc6a4a7935bd1e995ull;
constexpr int kShift = 47;

// Up to eight bytes, little-endian on every machine.
std::uint64_t word(const char* data, std::size_t bytes) {
  std::uint64_t value = 0;
  if (bytes == 8 && std::endian::native == std::endian::little) {
    std::memcpy(&value, data, 8);
    return value;
  }
  for (std::size_t i = bytes; i > 0; --i)
    value = value << 8 | static_cast<unsigned char>(data[i - 1]);
  return value;
}

}  // namespace

std::uint64_t checksum(std::string_view bytes, std::uint64_t seed) {
  std::uint64_t sum = seed ^ (bytes.size() * kFactor);
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    std::uint64_t part = word(bytes.data(), 8) * kFactor;
    part ^= part >> kShift;
    sum = (sum ^ (part * kFactor)) * kFactor;
  }
  if (!bytes.empty()) sum = (sum ^ word(bytes.data(), bytes.size())) * kFactor;
  sum ^= sum >> kShift;
  sum *= kFactor;
  return sum ^ (sum >> kShift);
}

}  // namespace mete::base
