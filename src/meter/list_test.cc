// SPDX-License-Identifier: Apache-2.0
#include "meter/list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace mete::meter {
namespace {

TEST(List, HoldsWhatWasAddedAndNotTakenOut) {
  List<uint64_t> list;
  std::vector<uint64_t> model;
  std::mt19937_64 random(11);
  for (uint64_t i = 0; i < 50'000; ++i) {
    if (random() % 3 != 0 || model.empty()) {
      ASSERT_TRUE(list.add(i));
      model.push_back(i);
    } else {
      const size_t at = random() % model.size();
      const auto found = std::find(model.begin(), model.end(), list[at]);
      ASSERT_NE(found, model.end());
      model.erase(found);
      list.remove(at);
    }
    ASSERT_EQ(list.size(), model.size());
  }
  std::vector<uint64_t> left(list.begin(), list.end());
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, model);
}

TEST(List, IsEmptyWhenItsBytesAreZero) {
  alignas(List<uint64_t>) unsigned char bytes[sizeof(List<uint64_t>)] = {};
  auto* list = reinterpret_cast<List<uint64_t>*>(bytes);
  EXPECT_EQ(list->size(), 0u);
  ASSERT_TRUE(list->add(7));
  EXPECT_EQ((*list)[0], 7u);
}

}  // namespace
}  // namespace mete::meter
