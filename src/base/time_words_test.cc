// SPDX-License-Identifier: Apache-2.0
#include "base/time_words.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "base/text.h"

namespace mete::base {
namespace {

class Moment : public testing::Test {
 protected:
  void SetUp() override {
    const char* zone = std::getenv("TZ");
    had_zone_ = zone != nullptr;
    if (had_zone_) zone_before_ = zone;
    in("UTC");
  }
  void TearDown() override {
    had_zone_ ? setenv("TZ", zone_before_.c_str(), 1) : unsetenv("TZ");
    tzset();
  }
  static void in(const char* zone) { setenv("TZ", zone, 1); }

  // As UTC; "-": refused.
  static std::string parsed(std::string_view text, const char* now = "2026-11-15T12:00:00.500Z") {
    const Result<WallTime> moment = parse_moment(text, *parse_wall_time(now));
    return moment ? to_string(*moment).substr(0, 16) : "-";
  }

 private:
  bool had_zone_ = false;
  std::string zone_before_;
};

TEST_F(Moment, IsTheNextTimeThatAClockShows) {
  EXPECT_EQ(parsed("18:00"), "2026-11-15T18:00");
  EXPECT_EQ(parsed("11:59"), "2026-11-16T11:59");
  EXPECT_EQ(parsed("8:05"), "2026-11-16T08:05");
  EXPECT_EQ(parsed("12:00"), "2026-11-15T12:00") << "this very second";
  EXPECT_EQ(parsed("12:00", "2026-12-31T12:00:01.000Z"), "2027-01-01T12:00");
  in("Europe/Berlin");
  EXPECT_EQ(parsed("18:00"), "2026-11-15T17:00");
  EXPECT_EQ(parsed("00:30", "2026-11-15T23:00:00.000Z"), "2026-11-15T23:30") << "it is the 16th";
}

TEST_F(Moment, HasADayIfOneIsSaid) {
  in("Europe/Berlin");
  EXPECT_EQ(parsed("2026-11-15 18:00"), "2026-11-15T17:00");
  EXPECT_EQ(parsed("2026-07-15T18:00:30"), "2026-07-15T16:00");
  EXPECT_EQ(parsed("2026-07-15"), "2026-07-14T22:00");
  EXPECT_EQ(parsed("tomorrow 08:00"), "2026-11-16T07:00");
  EXPECT_EQ(parsed("Tomorrow 08:00", "2026-10-31T12:00:00.000Z"), "2026-11-01T07:00");
  EXPECT_EQ(parsed("today 08:00"), "2026-11-15T07:00") << "it has passed; it was said so";
  EXPECT_EQ(parsed("todayt08:00"), "2026-11-15T07:00");
}

TEST_F(Moment, HasAZoneIfOneIsSaid) {
  in("America/New_York");
  EXPECT_EQ(parsed("2026-11-15T18:00:00Z"), "2026-11-15T18:00");
  EXPECT_EQ(parsed("2026-11-15 18:00z"), "2026-11-15T18:00");
  EXPECT_EQ(parsed("2026-11-15T18:00:00+01:00"), "2026-11-15T17:00");
  EXPECT_EQ(parsed("2026-11-15T18:00-05:30"), "2026-11-15T23:30");
}

TEST_F(Moment, CountsFromNow) {
  EXPECT_EQ(parsed("now"), "2026-11-15T12:00");
  EXPECT_EQ(parsed("now+2h"), "2026-11-15T14:00");
  EXPECT_EQ(parsed("now+90"), "2026-11-15T12:01");
  EXPECT_EQ(parsed("now+1-00:30"), "2026-11-16T12:30");
  EXPECT_EQ(parsed("now+30minutes"), "2026-11-15T12:30");
  EXPECT_EQ(parsed("now+1 hour"), "2026-11-15T13:00");
  EXPECT_EQ(parsed("now+2weeks"), "2026-11-29T12:00");
  in("Europe/Berlin");  // hours pass across a change of the clocks too
  EXPECT_EQ(parsed("now+1d", "2026-03-28T12:00:00.000Z"), "2026-03-29T12:00");
}

TEST_F(Moment, ThatClocksSkipIsWhenTheyJump) {
  in("Europe/Berlin");  // 2026-03-29: 02:00 becomes 03:00
  EXPECT_EQ(parsed("2026-03-29 01:59"), "2026-03-29T00:59");
  EXPECT_EQ(parsed("2026-03-29 02:00"), "2026-03-29T01:00");
  EXPECT_EQ(parsed("2026-03-29 02:30"), "2026-03-29T01:00");
  EXPECT_EQ(parsed("2026-03-29 03:00"), "2026-03-29T01:00");
  EXPECT_EQ(parsed("2026-03-29 03:01"), "2026-03-29T01:01");
  EXPECT_EQ(parsed("tomorrow 02:30", "2026-03-28T12:00:00.000Z"), "2026-03-29T01:00");
  EXPECT_EQ(parsed("02:30", "2026-03-29T00:30:00.000Z"), "2026-03-29T01:00");
  in("America/New_York");  // 2026-03-08
  EXPECT_EQ(parsed("2026-03-08 02:30"), "2026-03-08T07:00");
  EXPECT_EQ(parsed("2026-03-08 03:30"), "2026-03-08T07:30");
}

TEST_F(Moment, ThatClocksShowTwiceIsTheFirst) {
  in("Europe/Berlin");  // 2026-10-25: 03:00 becomes 02:00
  EXPECT_EQ(parsed("2026-10-25 01:59"), "2026-10-24T23:59");
  EXPECT_EQ(parsed("2026-10-25 02:30"), "2026-10-25T00:30");
  EXPECT_EQ(parsed("2026-10-25 02:30+01:00"), "2026-10-25T01:30") << "the second, by its zone";
  EXPECT_EQ(parsed("2026-10-25 03:00"), "2026-10-25T02:00");
  EXPECT_EQ(parsed("18:00", "2026-10-24T20:00:00.000Z"), "2026-10-25T17:00");
  in("America/New_York");  // 2026-11-01
  EXPECT_EQ(parsed("2026-11-01 01:30"), "2026-11-01T05:30");
  EXPECT_EQ(parsed("2026-11-01 02:00"), "2026-11-01T07:00");
}

TEST_F(Moment, IsRefusedWhenItIsNone) {
  for (const std::string_view text : split(
           "|6pm|24:00|18:60|18|2026-02-30|2026-13-01 08:00|1969-01-01|2026-11-15 "
           "6pm|tomorrow|now+|"
           "now-2h|now+2 fortnights|now+99999999999d|now+9999999d|18:00Z|tomorrow 08:00Z|t|T08:00|"
           "2026-11-15T18:00+15:00|yesterday 8:00|2026-11-15T18:00:00.123Z",
           '|'))
    EXPECT_EQ(parsed(text), "-") << text;
  EXPECT_NE(parse_moment("6pm", WallTime{0}).error().hint, "");
}

TEST(Durations, AreWrittenAsInSleepAndInSlurm) {
  const auto seconds = [](std::string_view text) {
    const Result<std::uint64_t> parsed = parse_duration(text);
    return parsed ? static_cast<std::int64_t>(*parsed) : -1;
  };
  EXPECT_EQ(seconds("90"), 90);
  EXPECT_EQ(seconds("90s"), 90);
  EXPECT_EQ(seconds("10m"), 600);
  EXPECT_EQ(seconds("2h"), 7200);
  EXPECT_EQ(seconds("1d"), 86400);
  EXPECT_EQ(seconds("10:30"), 630);
  EXPECT_EQ(seconds("1:30:00"), 5400);
  EXPECT_EQ(seconds("2-12"), 216000);
  EXPECT_EQ(seconds("2-12:30"), 217800);
  EXPECT_EQ(seconds("2-12:00:01"), 216001);
  for (const char* text : {"", "0", "0s", "-1", "1w", "s", "1:", "1:60", "1:2:3:4", "1-", "-1:00",
                           "1-2-3", "99999999999", "1.5h"})
    EXPECT_EQ(seconds(text), -1) << text;
}

}  // namespace
}  // namespace mete::base
