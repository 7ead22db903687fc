// SPDX-License-Identifier: Apache-2.0
#include "meter/cells.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace mete::meter {
namespace {

TEST(Cells, AreTakenFromTheFrontAndFoundByAnyAddress) {
  Cells cells;
  ASSERT_TRUE(cells.make(100));
  EXPECT_EQ(cells.take(3), 0u);
  EXPECT_EQ(cells.take(90), 3u);
  EXPECT_EQ(cells.take(8), Cells::kNone);
  EXPECT_EQ(cells.take(7), 93u);
  uint32_t first = 0;
  uint32_t count = 0;
  ASSERT_TRUE(cells.find(92, &first, &count));
  EXPECT_EQ(first, 3u);
  EXPECT_EQ(count, 90u);
  EXPECT_FALSE(cells.find(100, &first, &count));
  EXPECT_EQ(cells.give(3), 90u);
  EXPECT_FALSE(cells.find(92, &first, &count));
  EXPECT_EQ(cells.take(90), 3u);
  cells.drop();
}

// Compares with a list of blocks: no two blocks share a cell, a run that exists is found, and every
// cell comes back.
TEST(Cells, AsAModelSays) {
  std::mt19937 numbers(7);
  const auto random = [&] { return static_cast<uint32_t>(numbers()); };
  for (const uint32_t size : {1u, 16u, 64u, 65u, 4096u, 65536u}) {
    Cells cells;
    ASSERT_TRUE(cells.make(size));
    std::map<uint32_t, uint32_t> blocks;  // first → count
    for (int step = 0; step < 3000; ++step) {
      if (random() % 5 < 3) {
        const uint32_t count = 1 + random() % (random() % 4 == 0 ? size : size / 16 + 1);
        const uint32_t first = cells.take(count);
        uint32_t longest = 0;
        uint32_t end = 0;
        for (const auto& [at, length] : blocks) {
          longest = std::max(longest, at - end);
          end = at + length;
        }
        longest = std::max(longest, size - end);
        ASSERT_EQ(first == Cells::kNone, longest < count);
        if (first == Cells::kNone) continue;
        const auto after = blocks.lower_bound(first);
        ASSERT_TRUE(after == blocks.end() || after->first >= first + count);
        if (after != blocks.begin()) {
          const auto before = std::prev(after);
          ASSERT_LE(before->first + before->second, first);
        }
        blocks[first] = count;
      } else if (!blocks.empty()) {
        auto one = blocks.lower_bound(random() % size);
        if (one == blocks.end()) one = blocks.begin();
        uint32_t first = 0;
        uint32_t count = 0;
        ASSERT_TRUE(cells.find(one->first + random() % one->second, &first, &count));
        ASSERT_EQ(first, one->first);
        ASSERT_EQ(count, one->second);
        ASSERT_EQ(cells.give(first), count);
        blocks.erase(one);
      }
    }
    for (const auto& [first, count] : blocks) ASSERT_EQ(cells.give(first), count);
    EXPECT_TRUE(cells.empty());
    EXPECT_EQ(cells.take(size), 0u);
    cells.drop();
  }
}

}  // namespace
}  // namespace mete::meter
