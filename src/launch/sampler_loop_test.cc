// SPDX-License-Identifier: Apache-2.0
#include "launch/sampler_loop.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "launch/helper_process.h"

namespace mete::launch {
namespace {

TEST(SamplerLoop, SamplesUntilTheLauncherIsGone) {
  Result<base::Pipe> pipe = base::make_pipe();
  ASSERT_TRUE(pipe);
  int samples = 0;
  run_sampler_loop(
      pipe->read.get(),
      [&] {
        if (++samples == 3) pipe->write.reset();
      },
      1);
  EXPECT_EQ(samples, 3);
}

TEST(HelperProcess, RepliesAndHasNothingOfOurs) {
  Result<HelperProcess> helper = HelperProcess::start("tester", [](HelperProcess::Pipes pipes) {
    sigset_t blocked;
    (void)sigprocmask(SIG_BLOCK, nullptr, &blocked);
    const bool good = sigismember(&blocked, SIGINT) == 1 && isatty(0) == 0;
    (void)!write(pipes.reply, good ? "good" : "bad", good ? 5 : 4);
  });
  ASSERT_TRUE(helper);
  EXPECT_EQ(*helper->collect(60'000), "good");
  sigset_t blocked;
  (void)sigprocmask(SIG_BLOCK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGINT), 0);
}

TEST(HelperProcess, ThatDiesOrHangsIsNoticed) {
  Result<HelperProcess> dead = HelperProcess::start("tester", [](HelperProcess::Pipes) {});
  ASSERT_TRUE(dead);
  EXPECT_EQ(dead->collect(60'000).error().code, ErrorCode::kIo);
  Result<HelperProcess> hung =
      HelperProcess::start("tester", [](HelperProcess::Pipes) { (void)pause(); });
  ASSERT_TRUE(hung);
  EXPECT_EQ(hung->collect(1).error().code, ErrorCode::kBusy);
}

TEST(HelperProcess, DiesWithItsLauncher) {
  // The launcher is a child that starts a helper, reports that it runs, and is killed.
  Result<base::Pipe> held = base::make_pipe();
  ASSERT_TRUE(held);
  const pid_t launcher = fork();
  if (launcher == 0) {
    const int fd = held->write.get();
    Result<HelperProcess> helper = HelperProcess::start("tester", [fd](HelperProcess::Pipes) {
      (void)!write(fd, "r", 1);
      for (;;) (void)pause();
    });
    for (;;) (void)pause();
  }
  held->write.reset();
  char byte = 0;
  ASSERT_EQ(read(held->read.get(), &byte, 1), 1);
  ASSERT_EQ(kill(launcher, SIGKILL), 0);
  ASSERT_EQ(waitpid(launcher, nullptr, 0), launcher);
  // Both hold the writing end: it closes when the helper is gone too.
  EXPECT_EQ(read(held->read.get(), &byte, 1), 0);
}

}  // namespace
}  // namespace mete::launch
