// SPDX-License-Identifier: Apache-2.0
#include "meter/table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace mete::meter {
namespace {

TEST(Table, AgreesWithAMapUnderRandomUse) {
  Table table;
  std::map<uint64_t, uint64_t> model;
  std::mt19937_64 random(7);
  for (int i = 0; i < 400'000; ++i) {
    const uint64_t key =
        (1 + random() % 3000) * 512;  // aligned and close together, like device pointers
    if (random() % 2 == 0) {
      ASSERT_TRUE(table.put(key, {random(), key}));
      model[key] = table.find(key)->a;
    } else {
      TableValue value;
      ASSERT_EQ(table.remove(key, &value), model.count(key) == 1);
      if (model.count(key) == 1) {
        ASSERT_EQ(value.a, model[key]);
        model.erase(key);
      }
    }
  }
  ASSERT_EQ(table.size(), model.size());
  size_t seen = 0;
  table.each([&](uint64_t key, TableValue& value) {
    ++seen;
    ASSERT_EQ(model.at(key), value.a);
    ASSERT_EQ(value.b, key);
  });
  EXPECT_EQ(seen, model.size());
}

TEST(Table, HoldsAHundredThousandBlocks) {
  Table table;
  for (uint64_t i = 1; i <= 100'000; ++i) ASSERT_TRUE(table.put(i << 21, {i, 0}));
  for (uint64_t i = 1; i <= 100'000; ++i) ASSERT_EQ(table.find(i << 21)->a, i);
  EXPECT_EQ(table.find(5), nullptr);
}

}  // namespace
}  // namespace mete::meter
