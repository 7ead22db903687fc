// SPDX-License-Identifier: Apache-2.0
#include "base/checksum.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace mete::base {
namespace {

// On disk since version 3 of the store.
TEST(Checksum, NeverChanges) {
  EXPECT_EQ(checksum(""), 0u);
  EXPECT_EQ(checksum("", 1), 0xc6a4a7935bd064dcull);
  EXPECT_EQ(checksum("a"), 0x071717d2d36b6b11ull);
  EXPECT_EQ(checksum("12345678"), 0x758f67d162b2d202ull);
  EXPECT_EQ(checksum("The quick brown fox"), 0xf3231866c315bc69ull);
}

TEST(Checksum, EveryFlippedBitIsSeen) {
  const std::string text = "{\"id\":\"12\",\"outcome\":\"ok\",\"exit\":{\"exit_code\":0}}";
  std::set<std::uint64_t> sums = {checksum(text)};
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    std::string flipped = text;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_TRUE(sums.insert(checksum(flipped)).second) << bit;
  }
}

TEST(Checksum, ChainsByItsSeed) {
  EXPECT_NE(checksum("b", checksum("a")), checksum("", checksum("ab")));
  EXPECT_NE(checksum("b", checksum("a")), checksum("a", checksum("b")));
}

}  // namespace
}  // namespace mete::base
