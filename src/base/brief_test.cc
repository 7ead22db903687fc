// SPDX-License-Identifier: Apache-2.0
#include "base/brief.h"

#include <gtest/gtest.h>

namespace mete::base {
namespace {

TEST(Brief, BytesAreCutAndNeverRoundedUp) {
  EXPECT_EQ(brief(Bytes::from_mib(57260)), "55.9G");
  EXPECT_EQ(brief(Bytes::from_gib(14)), "14.0G");
  EXPECT_EQ(brief(Bytes::from_mib(1023)), "1023M");
  EXPECT_EQ(brief(Bytes::from_kib(12)), "12K");
  EXPECT_EQ(brief(Bytes()), "0");
  EXPECT_EQ(tenths_of_gib(Bytes::from_mib(1023)), "0.9");
}

TEST(Brief, DurationsAreWholeUnits) {
  EXPECT_EQ(brief_duration(59), "59s");
  EXPECT_EQ(brief_duration(3 * 3600 + 3599), "3h");
  EXPECT_EQ(brief_duration(WallTime{90'000}, WallTime{0}), "0s") << "a clock that was set back";
  EXPECT_EQ(clock_duration(45), "0:45");
  EXPECT_EQ(clock_duration(3 * 3600 + 725), "3:12:05");
  EXPECT_EQ(clock_duration(4 * 86400 + 3 * 3600 + 725), "4d 3:12");
}

TEST(Brief, NumbersInARow) {
  EXPECT_EQ(number_ranges({0, 1, 2, 5}), "0-2,5");
  EXPECT_EQ(number_ranges({0, 1, 5}), "0,1,5");
  EXPECT_EQ(number_ranges({}), "");
}

}  // namespace
}  // namespace mete::base
