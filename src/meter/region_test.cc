// SPDX-License-Identifier: Apache-2.0
#include "meter/region.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

namespace mete::meter {
namespace {

constexpr uint64_t kSide = 6;

Region box(uint64_t x0, uint64_t x1, uint64_t y0, uint64_t y1, uint64_t z0, uint64_t z1) {
  return {1, Region::kArray, 0, 0, {x0, y0, z0}, {x1, y1, z1}};
}

TEST(Bindings, AreGoneWhenTheWholeBoxIs) {
  Bindings bindings;
  ASSERT_TRUE(bindings.add({box(0, 4, 0, 4, 0, 1), 7}));
  CUmemGenericAllocationHandle handle = 0;
  int pieces = 0;
  ASSERT_TRUE(bindings.cut_one(box(0, 2, 0, 4, 0, 1), &handle, &pieces));
  EXPECT_EQ(handle, 7u);
  EXPECT_EQ(pieces, 1);
  EXPECT_FALSE(bindings.cut_one(box(0, 2, 0, 4, 0, 1), &handle, &pieces));
  ASSERT_TRUE(bindings.cut_one(box(2, 4, 0, 4, 0, 1), &handle, &pieces));
  EXPECT_EQ(pieces, 0);
  EXPECT_EQ(bindings.size(), 0u);
}

TEST(Bindings, OfOtherPlacesAreNotTouched) {
  Bindings bindings;
  Region other = box(0, 4, 0, 4, 0, 1);
  for (Region region : {other, other, other, other}) {
    const size_t which = bindings.size();
    if (which == 0) region.object = 2;
    if (which == 1) region.kind = Region::kMulticast;
    if (which == 2) region.level = 1;
    if (which == 3) region.layer = 1;
    ASSERT_TRUE(bindings.add({region, which + 1}));
  }
  CUmemGenericAllocationHandle handle = 0;
  int pieces = 0;
  EXPECT_FALSE(bindings.cut_one(other, &handle, &pieces));
  EXPECT_FALSE(bindings.take_one(2, true, &handle));
  ASSERT_TRUE(bindings.take_one(1, true, &handle));
  EXPECT_EQ(handle, 2u);
  ASSERT_TRUE(bindings.take_one(2, false, &handle));
  EXPECT_EQ(handle, 1u);
}

// Boxes are bound and unbound at random; a field of single cells says what must be left.
TEST(Bindings, AgreeWithAFieldOfCells) {
  std::mt19937_64 random(5);
  Bindings bindings;
  std::map<std::tuple<uint64_t, uint64_t, uint64_t>, uint64_t> cells;
  std::map<uint64_t, int> held;  // handle → bindings, as the meter counts them
  for (uint64_t round = 1; round <= 20'000; ++round) {
    uint64_t from[3];
    uint64_t to[3];
    for (int i = 0; i < 3; ++i) {
      from[i] = random() % kSide;
      to[i] = from[i] + 1 + random() % (kSide - from[i]);
    }
    const Region region = box(from[0], to[0], from[1], to[1], from[2], to[2]);
    CUmemGenericAllocationHandle handle = 0;
    int pieces = 0;
    while (bindings.cut_one(region, &handle, &pieces))
      if ((held[handle] += pieces - 1) == 0) held.erase(handle);
    const bool binds = random() % 2 == 0;
    if (binds) {
      ASSERT_TRUE(bindings.add({region, round}));
      held[round] = 1;
    }
    for (uint64_t x = from[0]; x < to[0]; ++x)
      for (uint64_t y = from[1]; y < to[1]; ++y)
        for (uint64_t z = from[2]; z < to[2]; ++z)
          if (binds)
            cells[{x, y, z}] = round;
          else
            cells.erase({x, y, z});
    std::map<uint64_t, int> expected;
    for (const auto& [cell, owner] : cells) expected[owner] = 1;
    ASSERT_EQ(held.size(), expected.size()) << "round " << round;
    for (const auto& [owner, count] : held) ASSERT_TRUE(expected.contains(owner)) << owner;
  }
}

}  // namespace
}  // namespace mete::meter
