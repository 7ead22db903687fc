// SPDX-License-Identifier: Apache-2.0
#include "core/order/job_list.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace mete::core {
namespace {

// Random inserts and erases, compared with a map.
TEST(JobList, IsAMap) {
  std::mt19937 random(11);
  for (const unsigned range : {3u, 700u, 5'000u}) {
    JobList<int> list;
    std::map<JobId, int> map;
    for (int step = 0; step < 20'000; ++step) {
      const JobId id{random() % range,
                     random() % 3 == 0 ? std::optional<std::uint32_t>(random() % 3) : std::nullopt};
      if (random() % 5 < 3) {
        ASSERT_EQ(list.insert(id, step), map.emplace(id, step).second);
      } else if (map.erase(id) > 0) {
        list.erase(id);
      }
      ASSERT_EQ(list.contains(id), map.contains(id));
      ASSERT_EQ(list.empty(), map.empty());
      if (map.contains(id)) {
        ASSERT_EQ(list.at(id), map.at(id));
      }
      if (step % 1'000 != 0) continue;
      auto expected = map.begin();
      for (const auto& [job, value] : list) {
        ASSERT_NE(expected, map.end());
        ASSERT_EQ(job, expected->first);
        ASSERT_EQ(value, expected++->second);
      }
      ASSERT_EQ(expected, map.end());
    }
    while (!map.empty()) {
      list.erase(map.begin()->first);
      map.erase(map.begin());
    }
    EXPECT_TRUE(list.empty());
    EXPECT_EQ(list.begin(), list.end());
  }
}

TEST(JobList, GrowsAtItsEndAndFromItsFront) {
  JobList<int> list;
  for (unsigned i = 1; i <= 5'000; ++i) ASSERT_TRUE(list.insert({i}, 1));
  for (unsigned i = 9'000; i > 5'000; --i) ASSERT_TRUE(list.insert({i}, 2));
  unsigned expected = 0;
  for (const auto& [id, value] : list) ASSERT_EQ(id.number, ++expected);
  EXPECT_EQ(expected, 9'000u);
}

}  // namespace
}  // namespace mete::core
