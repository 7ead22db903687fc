// SPDX-License-Identifier: Apache-2.0
#include "cli/detach_keys.h"

#include <gtest/gtest.h>

namespace mete::cli {
namespace {

TEST(DetachKeys, TwiceLeavesAndNothingAfterItIsSent) {
  DetachKeys keys;
  EXPECT_EQ(keys.typed("ls\r\x1c"), "ls\r");
  EXPECT_TRUE(keys.holds());
  EXPECT_FALSE(keys.detached());
  EXPECT_EQ(keys.typed("\x1crm"), "");
  EXPECT_TRUE(keys.detached());
  EXPECT_FALSE(keys.holds());
}

TEST(DetachKeys, OneAloneIsTheProgramsQuitKey) {
  DetachKeys keys;
  EXPECT_EQ(keys.typed("\x1cx\x1c"), "\x1cx");
  EXPECT_TRUE(keys.holds());
  EXPECT_EQ(keys.flush(), "\x1c");
  EXPECT_FALSE(keys.holds());
  EXPECT_EQ(keys.flush(), "");
  EXPECT_EQ(keys.typed("\x1c"), "");
  EXPECT_FALSE(keys.detached());
}

}  // namespace
}  // namespace mete::cli
