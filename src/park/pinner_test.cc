// SPDX-License-Identifier: Apache-2.0
#include "park/pinner.h"

#include <gtest/gtest.h>

namespace mete::park {
namespace {

TEST(PinnerTest, ASixteenthOfTheMachineStaysFree) {
  const std::string meminfo =
      "MemTotal:       16777216 kB\nMemFree:          123456 kB\nMemAvailable:    3145728 kB\n";
  const uint64_t gib = 1 << 30;
  EXPECT_TRUE(can_spare(meminfo, 2 * gib));  // of 3 available, 1 stays
  EXPECT_FALSE(can_spare(meminfo, 2 * gib + 1));
  EXPECT_FALSE(can_spare(meminfo, UINT64_MAX));
}

TEST(PinnerTest, WithoutFiguresNothingIsPinned) {
  EXPECT_FALSE(can_spare("", 1));
  EXPECT_FALSE(can_spare("MemTotal: x kB\nMemAvailable: 99999999 kB\n", 1));
  EXPECT_FALSE(can_spare("MemTotal: 1000 kB\nMemAvailable: 10 kB\n", 1));
}

}  // namespace
}  // namespace mete::park
