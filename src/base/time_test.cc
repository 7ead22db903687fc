// SPDX-License-Identifier: Apache-2.0
#include "base/time.h"

#include <gtest/gtest.h>

namespace mete::base {
namespace {

TEST(WallTime, IsWrittenAsRfc3339WithMilliseconds) {
  EXPECT_EQ(to_string(WallTime{0}), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(to_string(WallTime{1'763'185'843'007}), "2025-11-15T05:50:43.007Z");
  EXPECT_EQ(to_string(WallTime{-1}), "1969-12-31T23:59:59.999Z");
}

TEST(WallTime, ReadsBackWhatItWrites) {
  for (const std::int64_t ms : {0LL, -1LL, 1'763'185'843'123LL, 951'782'399'999LL})
    EXPECT_EQ(parse_wall_time(to_string(WallTime{ms})), WallTime{ms});
}

TEST(WallTime, RefusesWhatIsNoMoment) {
  for (const char* text : {"", "2026-11-15", "2026-02-31T00:00:00.000Z", "2026-11-15T05:50:43Z",
                           "2026-11-15 05:50:43.123Z", "2026-11-15T25:50:43.123Z"})
    EXPECT_EQ(parse_wall_time(text), std::nullopt) << text;
}

TEST(Duration, SaysTheTwoLargestUnits) {
  EXPECT_EQ(duration_in_words(12), "12 s");
  EXPECT_EQ(duration_in_words(200), "3 min 20 s");
  EXPECT_EQ(duration_in_words(7500), "2 h 5 min");
  EXPECT_EQ(duration_in_words(3600), "1 h");
  EXPECT_EQ(duration_in_words(90000), "1 d 1 h");
}

}  // namespace
}  // namespace mete::base
