// SPDX-License-Identifier: Apache-2.0
// Signals to, and the end of, all processes of a job. This process is the subreaper; its children
// fork, exit and are orphaned as fast as they can. A pipe that every process inherits shows
// independently whether one of them still lives.
#include "launch/offspring.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.h"

namespace mete::launch {
namespace {

class OffspringTest : public testing::Test {
 protected:
  void SetUp() override {
    reap();
    ASSERT_TRUE(offspring_is_gone({})) << "another test has left a child";
    ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
  }
  void TearDown() override {
    while (!offspring_is_gone({})) {
      SignalToAll(SIGKILL).send({});
      reap();
    }
    (void)prctl(PR_SET_CHILD_SUBREAPER, 0);
  }
  static void sleep_ms(long ms) {
    timespec time{ms / 1000, ms % 1000 * 1'000'000};
    while (nanosleep(&time, &time) != 0) continue;
  }
  static void reap() {
    while (waitpid(-1, nullptr, WNOHANG) > 0) continue;
  }
  // The pipe is at its end once all processes that hold it are gone.
  static bool somebody_has(const base::Pipe& pipe) {
    pollfd end{pipe.read.get(), POLLIN, 0};
    return poll(&end, 1, 0) == 0;
  }
  static base::Pipe make_pipe() { return std::move(*base::make_pipe()); }
  template <class Body>
  static pid_t child(Body body) {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    body();
    _exit(0);
  }
  // Waits for a byte that a child writes.
  static void wait_for_byte(const base::Pipe& pipe) {
    char byte = 0;
    EXPECT_EQ(read(pipe.read.get(), &byte, 1), 1);
  }
};

// Fork, exit, setsid, fork, exit, many times over: a look at the process table sometimes finds
// none, and the kernel's answer is never wrong.
TEST_F(OffspringTest, IsNotGoneWhileADaemonStarts) {
  for (int round = 0; round < 30; ++round) {
    base::Pipe alive = make_pipe();
    child([] {
      for (int generation = 0; generation < 20; ++generation) {
        if (fork() != 0) _exit(0);
        (void)setsid();
      }
    });
    alive.write.reset();
    for (;;) {
      reap();
      const bool gone = offspring_is_gone({});
      const bool lives = somebody_has(alive);
      // `lives` is read first: a process that lived then lived before.
      ASSERT_FALSE(gone && lives) << "round " << round;
      if (gone) break;
    }
  }
}

TEST_F(OffspringTest, OutsidersDoNotCount) {
  EXPECT_TRUE(offspring_is_gone({}));
  const pid_t outsider = child([] { sleep_ms(600'000); });
  EXPECT_FALSE(offspring_is_gone({}));
  EXPECT_TRUE(offspring_is_gone({{outsider}, ""}));
  SignalToAll(SIGKILL).send({{outsider}, ""});
  EXPECT_EQ(waitpid(outsider, nullptr, WNOHANG), 0) << "nor do they get signals";
}

TEST_F(OffspringTest, AZombieCountsUntilItIsReaped) {
  const pid_t zombie = child([] {});
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(zombie), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(offspring_is_gone({}));
  reap();
  EXPECT_TRUE(offspring_is_gone({}));
}

// Like a shell that is about to start its first program when it is cancelled.
TEST_F(OffspringTest, TermReachesWhatIsForkedMeanwhile) {
  for (int round = 0; round < 100; ++round) {
    base::Pipe alive = make_pipe();
    base::Pipe ready = make_pipe();
    child([&] {
      (void)!write(ready.write.get(), "x", 1);
      const timespec moment{0, round * 20'000};
      (void)nanosleep(&moment, nullptr);
      (void)fork();
      sleep_ms(600'000);
    });
    alive.write.reset();
    wait_for_byte(ready);
    SignalToAll term(SIGTERM);
    term.send({});
    while (!offspring_is_gone({})) {
      reap();
      term.send_to_orphans({});
    }
    EXPECT_FALSE(somebody_has(alive));
  }
}

TEST_F(OffspringTest, AProcessThatForksOnIsEnded) {
  for (const int number : {SIGTERM, SIGKILL}) {
    base::Pipe alive = make_pipe();
    base::Pipe ready = make_pipe();
    child([&] {
      (void)!write(ready.write.get(), "x", 1);
      for (;;) {
        if (fork() != 0) _exit(0);
        sleep_ms(2);
      }
    });
    alive.write.reset();
    wait_for_byte(ready);
    for (int moment = 0; moment < 20; ++moment) {
      sleep_ms(1);
      reap();
      ASSERT_FALSE(offspring_is_gone({}));
    }
    SignalToAll signal(number);
    signal.send({});
    while (!offspring_is_gone({})) {
      reap();
      signal.send_to_orphans({});
    }
    EXPECT_FALSE(somebody_has(alive));
  }
}

TEST_F(OffspringTest, AStoppedProcessHearsTerm) {
  const pid_t stopped = child([] { sleep_ms(600'000); });
  (void)kill(stopped, SIGSTOP);
  ASSERT_EQ(waitpid(stopped, nullptr, WUNTRACED), stopped);
  SignalToAll(SIGTERM).send({});
  int status = 0;
  ASSERT_EQ(waitpid(stopped, &status, 0), stopped);
  EXPECT_TRUE(WIFSIGNALED(status));
}

// What a handler of TERM starts (a copy of a checkpoint, say) is not ended by that TERM.
TEST_F(OffspringTest, WhatAHandlerStartsIsLeftAlone) {
  static int written = -1;
  base::Pipe ready = make_pipe();
  base::Pipe saved = make_pipe();
  child([&] {
    written = saved.write.get();
    (void)signal(SIGTERM, [](int) {
      const pid_t helper = fork();
      if (helper == 0) {
        (void)signal(SIGTERM, SIG_DFL);
        sleep_ms(50);
        (void)!write(written, "x", 1);
        _exit(0);
      }
      int status = 0;
      (void)waitpid(helper, &status, 0);
      _exit(0);
    });
    (void)!write(ready.write.get(), "x", 1);
    sleep_ms(600'000);
  });
  wait_for_byte(ready);
  saved.write.reset();
  SignalToAll term(SIGTERM);
  term.send({});
  while (!offspring_is_gone({})) {
    reap();
    term.send_to_orphans({});
  }
  wait_for_byte(saved);
}

}  // namespace
}  // namespace mete::launch
