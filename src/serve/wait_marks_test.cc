// SPDX-License-Identifier: Apache-2.0
#include "serve/wait_marks.h"

#include <gtest/gtest.h>

namespace mete::serve {
namespace {

core::Wait wait_until(std::int64_t ms) {
  core::Wait wait;
  wait.reason = core::Reason::kBegin;
  wait.until = WallTime{ms};
  return wait;
}

TEST(WaitMarks, ChangeIfAndOnlyIfTheWaitDoes) {
  WaitMarks marks;
  const core::SharedWait wait = wait_until(1'000);
  const std::uint64_t mark = marks.mark_of(wait);
  EXPECT_EQ(marks.mark_of(wait), mark);
  EXPECT_EQ(marks.mark_of(wait_until(1'000)), mark) << "another one that is equal";
  EXPECT_NE(marks.mark_of(wait_until(1'001)), mark) << "1 ms that no sentence for people shows";
  EXPECT_EQ(WaitMarks().mark_of(wait), mark) << "a client may come back to another daemon";
}

TEST(WaitMarks, AreMadeAgainBeyondTheirBound) {
  WaitMarks marks;
  const std::uint64_t first = marks.mark_of(wait_until(0));
  for (std::size_t i = 0; i < 2 * WaitMarks::kMost; ++i)
    EXPECT_EQ(marks.mark_of(wait_until(static_cast<std::int64_t>(i))) == first, i == 0);
  EXPECT_EQ(marks.mark_of(wait_until(0)), first);
}

}  // namespace
}  // namespace mete::serve
