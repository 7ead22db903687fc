// SPDX-License-Identifier: Apache-2.0
#include "park/extents.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace mete::park {
namespace {

constexpr uint64_t kG = 2 << 20;

uint64_t sum(const std::vector<Extent>& extents) {
  return std::accumulate(extents.begin(), extents.end(), uint64_t{0},
                         [](uint64_t all, const Extent& e) { return all + e.bytes; });
}

TEST(ExtentsTest, TheSmallestRunThatHoldsItIsTaken) {
  Extents extents;
  extents.add(1, 16 * kG);
  extents.add(2, 4 * kG);
  EXPECT_EQ(extents.take(4 * kG), (std::vector<Extent>{{2, 0, 4 * kG}}));
  EXPECT_EQ(extents.take(4 * kG), (std::vector<Extent>{{1, 0, 4 * kG}}));
}

TEST(ExtentsTest, ARequestMayLieInSeveralSegments) {
  Extents extents;
  extents.add(1, 4 * kG);
  extents.add(2, 8 * kG);
  const std::vector<Extent> taken = extents.take(11 * kG);
  EXPECT_EQ(taken, (std::vector<Extent>{{2, 0, 8 * kG}, {1, 0, 3 * kG}}));
  EXPECT_TRUE(extents.take(2 * kG).empty());
  EXPECT_EQ(extents.free_bytes(), kG);
  extents.give(taken);
  EXPECT_EQ(extents.free_bytes(), 12 * kG);
}

TEST(ExtentsTest, OnlyAWholeFreeSegmentCanGo) {
  Extents extents;
  extents.add(1, 4 * kG);
  extents.add(2, 4 * kG);
  const std::vector<Extent> a = extents.take(4 * kG), b = extents.take(kG);
  EXPECT_EQ(extents.free_segment(), std::nullopt);
  extents.give(a);
  ASSERT_EQ(extents.free_segment(), a[0].segment);
  extents.remove(a[0].segment);
  EXPECT_EQ(extents.size(), 4 * kG);
  extents.give(b);
  EXPECT_EQ(extents.free_segment(), b[0].segment);
}

TEST(ExtentsTest, GivingTwiceIsNoticed) {
  Extents extents;
  extents.add(1, 4 * kG);
  const std::vector<Extent> taken = extents.take(2 * kG);
  extents.give(taken);
  EXPECT_DEATH(extents.give(taken), "impossible");
}

// Whatever is taken and given back: nothing overlaps, nothing is lost, and in the end every segment
// is whole again.
TEST(ExtentsTest, NothingOverlapsAndAllComesBack) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    const auto upto = [&](uint64_t most) { return 1 + random() % most; };
    Extents extents;
    std::map<uint32_t, std::vector<bool>> taken_granules;
    uint32_t next_segment = 0;
    const auto grow = [&] {
      const uint64_t granules = upto(64);
      taken_granules[next_segment].resize(granules);
      extents.add(next_segment++, granules * kG);
    };
    const auto mark = [&](const std::vector<Extent>& list, bool value) {
      for (const Extent& extent : list)
        for (uint64_t at = extent.offset / kG; at < (extent.offset + extent.bytes) / kG; ++at) {
          std::vector<bool>& granules = taken_granules.at(extent.segment);
          ASSERT_LT(at, granules.size());
          ASSERT_NE(granules[at], value) << "seed " << seed;
          granules[at] = value;
        }
    };
    grow();
    std::vector<std::vector<Extent>> held;
    uint64_t held_bytes = 0;
    for (int step = 0; step < 1500; ++step) {
      const unsigned what = random() % 16;
      if (what == 0) {
        grow();
      } else if (what == 1) {
        if (const std::optional<uint32_t> segment = extents.free_segment()) {
          for (const bool granule : taken_granules.at(*segment)) ASSERT_FALSE(granule);
          extents.remove(*segment);
          taken_granules.erase(*segment);
        }
      } else if (what < 9) {
        const uint64_t bytes = upto(what == 2 ? 200 : 12) * kG;
        const uint64_t free = extents.free_bytes();
        const std::vector<Extent> list = extents.take(bytes);
        ASSERT_EQ(sum(list), bytes <= free ? bytes : 0);
        mark(list, true);
        if (!list.empty()) held.push_back(list);
        held_bytes += sum(list);
      } else if (!held.empty()) {
        std::swap(held[random() % held.size()], held.back());
        mark(held.back(), false);
        held_bytes -= sum(held.back());
        extents.give(held.back());
        held.pop_back();
      }
      ASSERT_EQ(extents.size() - extents.free_bytes(), held_bytes);
    }
    for (const std::vector<Extent>& list : held) extents.give(list);
    while (const std::optional<uint32_t> segment = extents.free_segment()) extents.remove(*segment);
    EXPECT_EQ(extents.size(), 0u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace mete::park
