// SPDX-License-Identifier: Apache-2.0
// The event loop: order of posted functions and timers, level-triggered descriptors, and
// cancelling: a dropped timer or watch is never called, even in the turn in which it was due. Also
// pidfds, signalfds, and handles that outlive the loop. Descriptors are real pipes and processes.
#include "net/loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"

namespace mete::net {
namespace {

TEST(Loop, RunsWhatIsPostedInOrderAndNotBefore) {
  Loop loop;
  std::string seen;
  loop.post([&] {
    loop.post([&] {
      seen += 'c';
      loop.stop();
    });
    seen += 'a';
  });
  loop.post([&] { seen += 'b'; });
  EXPECT_EQ(seen, "");
  loop.run();
  EXPECT_EQ(seen, "abc");
}

TEST(Loop, RunsAgainAfterStop) {
  Loop loop;
  int runs = 0;
  for (int i = 0; i < 2; ++i) {
    loop.post([&] {
      ++runs;
      loop.stop();
    });
    loop.run();
  }
  EXPECT_EQ(runs, 2);
}

TEST(Loop, TimersComeInTheOrderOfTheirTimes) {
  Loop loop;
  std::string seen;
  const Timer late = loop.after(Milliseconds(20), [&] {
    seen += 'b';
    loop.stop();
  });
  const Timer early = loop.after(Milliseconds(1), [&] { seen += 'a'; });
  loop.run();
  EXPECT_EQ(seen, "ab");
}

TEST(Loop, ADroppedTimerIsNotCalledEvenWhenDue) {
  Loop loop;
  bool called = false;
  Timer second;
  // Both are due in one turn; the first drops the second.
  const Timer first = loop.after(Milliseconds(0), [&] {
    second.cancel();
    loop.post([&] { loop.post([&] { loop.stop(); }); });
  });
  second = loop.after(Milliseconds(0), [&] { called = true; });
  loop.run();
  EXPECT_FALSE(called);
}

TEST(Loop, APeriodicTimerGoesOnUntilItCancelsItself) {
  Loop loop;
  int calls = 0;
  Timer timer;
  timer = loop.every(Milliseconds(1), [&] {
    if (++calls < 3) return;
    timer.cancel();
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(calls, 3);
}

TEST(Loop, ADescriptorIsToldForAsLongAsItIsReadable) {
  Loop loop;
  Result<base::Pipe> pipe = base::make_pipe();
  ASSERT_TRUE(pipe);
  ASSERT_EQ(write(pipe->write.get(), "abc", 3), 3);
  std::string seen;
  Result<Watch> watch = loop.watch(pipe->read.get(), kReadable, [&](Ready) {
    char byte = 0;
    ASSERT_EQ(read(pipe->read.get(), &byte, 1), 1);  // one at a time
    seen += byte;
    if (seen.size() == 3) loop.stop();
  });
  ASSERT_TRUE(watch);
  loop.run();
  EXPECT_EQ(seen, "abc");
}

TEST(Loop, APausedWatchIsNotToldAndGoesOnLater) {
  Loop loop;
  Result<base::Pipe> pipe = base::make_pipe();
  ASSERT_TRUE(pipe);
  int told = 0;
  Watch watch;
  Result<Watch> made = loop.watch(pipe->read.get(), kReadable, [&](Ready) {
    ++told;
    watch.want(0);
    loop.post([&] { loop.post([&] { loop.stop(); }); });
  });
  ASSERT_TRUE(made);
  watch = *std::move(made);
  ASSERT_EQ(write(pipe->write.get(), "x", 1), 1);
  loop.run();
  EXPECT_EQ(told, 1);
  watch.want(kReadable);  // the byte is still there
  loop.run();
  EXPECT_EQ(told, 2);
}

TEST(Loop, AWatchMayBeDroppedInItsOwnCallAndItsDescriptorStaysOpen) {
  Loop loop;
  Result<base::Pipe> pipe = base::make_pipe();
  ASSERT_TRUE(pipe);
  ASSERT_EQ(write(pipe->write.get(), "x", 1), 1);
  Watch watch;
  int told = 0;
  Result<Watch> made = loop.watch(pipe->read.get(), kReadable, [&](Ready) {
    ++told;
    watch.cancel();
    loop.post([&] { loop.post([&] { loop.stop(); }); });
  });
  ASSERT_TRUE(made);
  watch = *std::move(made);
  loop.run();
  EXPECT_EQ(told, 1);
  EXPECT_GE(fcntl(pipe->read.get(), F_GETFD), 0);
  EXPECT_TRUE(loop.watch(pipe->read.get(), kReadable, [](Ready) {})) << "and can be watched again";
}

TEST(Loop, ADescriptorOfTheSameNumberMayBeWatchedInTheCallThatDropsTheLast) {
  Loop loop;
  Result<base::Pipe> first = base::make_pipe();
  ASSERT_TRUE(first);
  const int number = first->read.get();
  ASSERT_EQ(write(first->write.get(), "x", 1), 1);
  Result<base::Pipe> second = base::make_pipe();
  ASSERT_TRUE(second);
  Watch watch;
  Watch next;
  Result<Watch> made = loop.watch(number, kReadable, [&](Ready) {
    watch.cancel();
    first->read.reset();
    ASSERT_EQ(fcntl(second->read.get(), F_DUPFD_CLOEXEC, number), number);
    Result<Watch> again = loop.watch(number, kReadable, [&](Ready) { loop.stop(); });
    ASSERT_TRUE(again);
    next = *std::move(again);
  });
  ASSERT_TRUE(made);
  watch = *std::move(made);
  loop.post([&] { ASSERT_EQ(write(second->write.get(), "x", 1), 1); });
  Timer late = loop.after(Milliseconds(60'000), [&] {
    ADD_FAILURE() << "not called";
    loop.stop();
  });
  loop.run();
  next.cancel();
  (void)close(number);
}

TEST(Loop, SeesThatAProcessEnded) {
  Loop loop;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  const Fd handle(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  ASSERT_TRUE(handle);
  const Result<Watch> watch = loop.watch(handle.get(), kReadable, [&](Ready) { loop.stop(); });
  ASSERT_TRUE(watch);
  loop.run();
  EXPECT_EQ(waitpid(child, nullptr, WNOHANG), child);
}

TEST(Loop, TakesSignalsByADescriptor) {
  Loop loop;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &set, nullptr), 0);
  const Fd signals(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  ASSERT_TRUE(signals);
  signalfd_siginfo info{};
  const Result<Watch> watch = loop.watch(signals.get(), kReadable, [&](Ready) {
    ASSERT_EQ(read(signals.get(), &info, sizeof info), ssize_t{sizeof info});
    loop.stop();
  });
  ASSERT_TRUE(watch);
  loop.post([] { raise(SIGUSR1); });
  loop.run();
  EXPECT_EQ(info.ssi_signo, unsigned{SIGUSR1});
}

TEST(Loop, RefusesAPlainFile) {
  Loop loop;
  const Result<Fd> file = base::open_fd("/proc/self/exe", O_RDONLY);
  ASSERT_TRUE(file);
  EXPECT_FALSE(loop.watch(file->get(), kReadable, [](Ready) {}));
  EXPECT_FALSE(loop.watch(-1, kReadable, [](Ready) {}));
}

TEST(Loop, HandlesMayOutliveIt) {
  Timer timer;
  Watch watch;
  Result<base::Pipe> pipe = base::make_pipe();
  ASSERT_TRUE(pipe);
  {
    Loop loop;
    timer = loop.after(Milliseconds(0), [] { FAIL(); });
    Result<Watch> made = loop.watch(pipe->read.get(), kReadable, [](Ready) { FAIL(); });
    ASSERT_TRUE(made);
    watch = *std::move(made);
  }
  watch.want(kReadable | kHangup);
  EXPECT_TRUE(timer.active());
}

}  // namespace
}  // namespace mete::net
