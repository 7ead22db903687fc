// SPDX-License-Identifier: Apache-2.0
#include "node/child.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace mete::node {
namespace {

ChildRequest shell(const std::string& script) {
  return {
      "/bin/sh", {"-c", script}, {"PATH=/usr/bin:/bin", "WORD=here"}, seam::Milliseconds(60000)};
}

TEST(RunChild, ReturnsOutputErrorsAndExitCode) {
  const Result<ChildAnswer> answer =
      run_child(shell("echo $WORD; echo no >&2; exit 3"), seam::system_clock());
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->output, "here\n");
  EXPECT_EQ(answer->errors, "no\n");
  EXPECT_EQ(answer->exit_code, 3);
}

TEST(RunChild, TellsASignal) {
  EXPECT_EQ(run_child(shell("kill -9 $$"), seam::system_clock())->exit_code, 128 + 9);
}

TEST(RunChild, BoundsWhatItKeeps) {
  const Result<ChildAnswer> answer =
      run_child(shell("head -c 1000000 /dev/zero"), seam::system_clock());
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->output.size(), 64u * 1024u);
}

TEST(RunChild, KillsWhatDoesNotEnd) {
  ChildRequest request = shell("exec sleep 1000");
  request.timeout = seam::Milliseconds(300);
  const Result<ChildAnswer> answer = run_child(request, seam::system_clock());
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kBusy);
}

TEST(RunChild, ClosedOutputIsNotTheEnd) {
  ChildRequest request = shell("exec sleep 1000 >&- 2>&-");
  request.timeout = seam::Milliseconds(300);
  EXPECT_EQ(run_child(request, seam::system_clock()).error().code, ErrorCode::kBusy);
}

TEST(RunChild, AMissingProgramIsNotFound) {
  EXPECT_EQ(run_child({"/no/such/program", {}, {}, seam::Milliseconds(1000)}, seam::system_clock())
                .error()
                .code,
            ErrorCode::kNotFound);
}

}  // namespace
}  // namespace mete::node
