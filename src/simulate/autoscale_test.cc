// SPDX-License-Identifier: Apache-2.0
#include "simulate/autoscale.h"

#include <gtest/gtest.h>

namespace mete::simulate {
namespace {

std::string message(const std::string& text) {
  const auto read = parse_in_flight(text, "T.csv");
  return read ? "fine" : read.error().message;
}

TEST(InFlight, HasEverySecond) {
  const auto read = parse_in_flight("t_s,in_flight\n0,0\n1,2\n2,2.5\n", "T.csv");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, (std::vector<double>{0, 2, 2.5}));
  EXPECT_EQ(message("t_s,in_flight\n0,0\n2,1\n"), "T.csv:3: t_s is 2, and 1 is next");
  EXPECT_EQ(message("t_s,in_flight\n1,0\n"), "T.csv:2: t_s is 1, and 0 is next");
  EXPECT_EQ(message("t_s,in_flight\n0,0\n0,0\n"), "T.csv:3: t_s is 0, and 1 is next");
  EXPECT_EQ(message("t_s,in_flight\n0,-1\n"),
            "T.csv:2: in_flight must be a number from 0, not '-1'");
  EXPECT_EQ(message("t_s,in_flight\n"), "T.csv:1: there is no second");
  EXPECT_EQ(message("t_s,load\n0,1\n"), "T.csv:1: there is no column 'in_flight'");
}

TEST(Autoscaling, TicksEveryTenSeconds) {
  core::service::Autoscaling rules;
  rules.target_in_flight = 2;
  const auto ticks = simulate_autoscaling(rules, std::vector<double>(31, 1.0));
  ASSERT_EQ(ticks.size(), 3u);
  EXPECT_EQ(ticks[0].t_s, 10);
  EXPECT_EQ(ticks[2].t_s, 30);
  EXPECT_EQ(ticks[1].avg, 1);
  EXPECT_EQ(ticks[1].raw, 0.5);
  EXPECT_EQ(ticks[1].replicas, 1u);
}

}  // namespace
}  // namespace mete::simulate
