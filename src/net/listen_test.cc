// SPDX-License-Identifier: Apache-2.0
// The daemon's socket and its lock: modes of folder, lock and socket, one winner of many, stale
// sockets, removed files, waiting for an ending daemon, and sockets from systemd. Other daemons are
// forked processes; a kill must free the lock. Paths that are too long, links and foreign folders
// are refused.
#include "net/listen.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/file.h"
#include "net/life_lock.h"
#include "net/test/support.h"

namespace mete::net {
namespace {

mode_t mode_of(const std::string& path) {
  struct stat info {};
  EXPECT_EQ(lstat(path.c_str(), &info), 0) << path;
  return info.st_mode & 07777;
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

TEST(Listen, MakesAFolderALockAndASocketForUsAlone) {
  const TemporaryFolder folder;
  const std::string path = folder / "a/mete/meted.sock";
  {
    Result<Listener> listener = listen_at({path});
    ASSERT_TRUE(listener) << listener.error().message;
    EXPECT_EQ(mode_of(folder / "a/mete"), 0700u);
    EXPECT_EQ(mode_of(path), 0600u);
    EXPECT_EQ(mode_of(path + ".lock"), 0600u);
    EXPECT_TRUE(connect_unix(path, kLong));
    const Fd socket = listener->take_socket();
    EXPECT_EQ(fcntl(socket.get(), F_GETFD), FD_CLOEXEC);
  }
  EXPECT_FALSE(exists(path));
  EXPECT_TRUE(exists(path + ".lock"));
}

TEST(Listen, TheSystemsSocketIsForEverybody) {
  const TemporaryFolder folder;
  const mode_t before = umask(077);
  const Result<Listener> listener = listen_at({folder / "mete/s", true});
  umask(before);
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_EQ(mode_of(folder / "mete"), 0755u);
  EXPECT_EQ(mode_of(folder / "mete/s"), 0666u);
}

TEST(Listen, APlaceCanBeClaimedBeforeAnybodyMayCome) {
  const TemporaryFolder folder;
  Result<Listener> listener = claim_place({folder / "s"});
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_FALSE(connect_unix(folder / "s", kLong));
  EXPECT_EQ(claim_place({folder / "s"}).error().code, ErrorCode::kBusy);
  ASSERT_TRUE(listener->open_door());
  EXPECT_TRUE(connect_unix(folder / "s", kLong));
}

TEST(Listen, ThereIsOneWinner) {
  const TemporaryFolder folder;
  const Result<Listener> first = listen_at({folder / "s"});
  ASSERT_TRUE(first);
  const Result<Listener> second = listen_at({folder / "s"});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kBusy);
  EXPECT_TRUE(connect_unix(folder / "s", kLong)) << "the loser left the socket alone";
}

TEST(Listen, ReplacesASocketThatADeadDaemonLeft) {
  const TemporaryFolder folder;
  { const Fd dead = listen_plainly(folder / "s"); }
  ASSERT_TRUE(exists(folder / "s"));
  const Result<Listener> listener = listen_at({folder / "s"});
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_TRUE(connect_unix(folder / "s", kLong));
}

TEST(Listen, DoesNotTakeThePlaceOfALivingDaemonWhoseLockFileIsGone) {
  const TemporaryFolder folder;
  const Result<Listener> first = listen_at({folder / "s"});
  ASSERT_TRUE(first);
  ASSERT_EQ(unlink((folder / "s.lock").c_str()), 0);
  EXPECT_EQ(listen_at({folder / "s"}).error().code, ErrorCode::kBusy);
}

TEST(Listen, AnEndingDaemonLeavesTheSocketOfItsSuccessor) {
  const TemporaryFolder folder;
  const std::string path = folder / "state/s";
  std::optional<Result<Listener>> first(listen_at({path}));
  ASSERT_TRUE(*first);
  // Everything is removed, and the next daemon starts before the first has noticed.
  std::filesystem::remove_all(folder / "state");
  EXPECT_FALSE((**first).is_in_place());
  const Result<Listener> second = listen_at({path});
  ASSERT_TRUE(second) << second.error().message;
  first.reset();
  EXPECT_TRUE(connect_unix(path, kLong)) << "the first took the second one's socket away";
}

TEST(Listen, ASocketThatIsGoneIsMadeAgainUnderTheSameLock) {
  const TemporaryFolder folder;
  Result<Listener> listener = listen_at({folder / "run/s"});
  ASSERT_TRUE(listener);
  const Fd lost = listener->take_socket();
  EXPECT_TRUE(listener->is_in_place());
  ASSERT_EQ(unlink((folder / "run/s").c_str()), 0);
  EXPECT_FALSE(listener->is_in_place());
  ASSERT_TRUE(listener->reopen_door());
  EXPECT_TRUE(listener->is_in_place());
  EXPECT_TRUE(connect_unix(folder / "run/s", kLong));
  // Without its lock any daemon may bind the path.
  std::filesystem::remove_all(folder / "run");
  EXPECT_EQ(listener->reopen_door().error().code, ErrorCode::kBusy);
}

TEST(Listen, LeavesWhatIsNotASocket) {
  const TemporaryFolder folder;
  ASSERT_TRUE(base::write_atomic(folder / "s", "mine"));
  EXPECT_EQ(listen_at({folder / "s"}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(*base::read_all(folder / "s"), "mine");
}

TEST(Listen, RefusesAFolderInWhichOthersMayWrite) {
  const TemporaryFolder folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 01777), 0);
  const Result<Listener> listener = listen_at({folder / "s"});
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, ErrorCode::kDenied);
  EXPECT_NE(listener.error().evidence.find("mode 1777"), std::string::npos);
}

TEST(Listen, SaysThatAPathIsTooLong) {
  const TemporaryFolder folder;
  const Result<Listener> listener = listen_at({folder / std::string(100, 'x')});
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, ErrorCode::kInvalid);
  EXPECT_NE(listener.error().hint.find("METE_SOCKET"), std::string::npos);
}

TEST(Listen, DoesNotFollowALinkInPlaceOfItsLock) {
  const TemporaryFolder folder;
  ASSERT_EQ(symlink("/dev/null", (folder / "s.lock").c_str()), 0);
  EXPECT_FALSE(listen_at({folder / "s"}));
}

TEST(Listen, WaitsForADaemonThatEnds) {
  const TemporaryFolder folder;
  std::optional<Listener> first;
  {
    Result<Listener> made = listen_at({folder / "s"});
    ASSERT_TRUE(made);
    first.emplace(*std::move(made));
  }
  std::promise<void> begun;
  std::thread second([&] {
    begun.set_value();
    const Result<Listener> listener = listen_at({folder / "s", false, kLong});
    EXPECT_TRUE(listener) << listener.error().message;
  });
  ASSERT_TRUE(comes(begun));
  first.reset();
  second.join();
}

TEST(LifeLock, WaitingEndsWithItsTimeAndWithAnInterrupt) {
  const TemporaryFolder folder;
  const Result<Fd> held = take_lock(folder / "l", Deadline::in(Milliseconds(0)));
  ASSERT_TRUE(held);
  EXPECT_EQ(take_lock(folder / "l", Deadline::in(Milliseconds(20))).error().code, ErrorCode::kBusy);
  Result<base::Pipe> pipe = base::make_pipe();
  ASSERT_TRUE(pipe);
  pipe->write.reset();
  EXPECT_EQ(take_lock(folder / "l", Deadline(), pipe->read.get()).error().code, ErrorCode::kIo);
}

TEST(LifeLock, AKillGivesItBack) {
  const TemporaryFolder folder;
  Result<base::Pipe> pipe = base::make_pipe();
  ASSERT_TRUE(pipe);
  const pid_t child = fork();
  if (child == 0) {
    const Result<Fd> held = take_lock(folder / "l", Deadline::in(Milliseconds(0)));
    (void)!write(pipe->write.get(), held ? "y" : "n", 1);
    for (;;) pause();
  }
  char holds = 0;
  ASSERT_EQ(read(pipe->read.get(), &holds, 1), 1);
  ASSERT_EQ(holds, 'y');
  ASSERT_FALSE(take_lock(folder / "l", Deadline::in(Milliseconds(0))));
  ASSERT_EQ(kill(child, SIGKILL), 0);
  EXPECT_TRUE(take_lock(folder / "l", Deadline::in(kLong)));
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
}

// In a child, since the descriptor must be number 3.
int listen_with_inherited(const std::string& path, const std::string& pid) {
  const pid_t child = fork();
  if (child == 0) {
    Fd socket = listen_plainly(path);
    if (socket.get() != 3) (void)dup2(socket.release(), 3);
    setenv("LISTEN_FDS", "1", 1);
    setenv("LISTEN_PID", pid.empty() ? std::to_string(getpid()).c_str() : pid.c_str(), 1);
    Result<Listener> listener = listen_at({base::parent_path(path) + "/other"});
    int code = 0;
    if (!listener) code |= 1;
    if (listener && listener->inherited()) code |= 2;
    if (listener && listener->path() == path) code |= 4;
    if (listener && connect_unix(listener->path(), kLong)) code |= 8;
    if (getenv("LISTEN_FDS") != nullptr || getenv("LISTEN_PID") != nullptr) code |= 16;
    { const Result<Listener> ended = std::move(listener); }
    if (!exists(path)) code |= 32;
    _exit(code);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Listen, TakesTheSocketThatSystemdHandsOverAndLeavesItsFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(listen_with_inherited(folder / "s", ""), 2 | 4 | 8);
}

TEST(Listen, TakesNoSocketThatWasMeantForAnotherProcess) {
  const TemporaryFolder folder;
  EXPECT_EQ(listen_with_inherited(folder / "s", "1"), 8);
}

}  // namespace
}  // namespace mete::net
