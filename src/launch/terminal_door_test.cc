// SPDX-License-Identifier: Apache-2.0
// The terminal of a job and its clients, over a real pseudo-terminal and Unix socket: what the
// program writes reaches every client, what a client types reaches the program, and slow clients or
// programs block no other. Sockets of other users and links are refused. The keeper's loop is a few
// calls of poll(2) in the test.
#include "launch/terminal_door.h"

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/file.h"

namespace mete::launch {
namespace {

class TerminalDoorTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mete-door-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    Result<TerminalDoor> door = TerminalDoor::open(path());
    ASSERT_TRUE(door.ok()) << door.error().message;
    door_.emplace(*std::move(door));
    termios raw{};
    ASSERT_EQ(tcgetattr(door_->terminal(), &raw), 0);
    cfmakeraw(&raw);
    ASSERT_EQ(tcsetattr(door_->terminal(), TCSANOW, &raw), 0);
  }
  void TearDown() override {
    door_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::string path() const { return base::join_path(folder_, "12.1"); }
  Fd client() {
    Result<Fd> fd = connect_terminal(path(), geteuid());
    EXPECT_TRUE(fd.ok()) << fd.error().message;
    turn();
    return fd ? *std::move(fd) : Fd();
  }
  // A few turns of the keeper's loop; returns what the program wrote.
  std::string turn(int times = 5) {
    std::string written;
    for (int i = 0; i < times; ++i) {
      std::vector<pollfd> list;
      door_->listen(list);
      (void)poll(list.data(), list.size(), 10);
      written += door_->heard(list);
    }
    return written;
  }
  void program_writes(const std::string& text) {
    ASSERT_EQ(write(door_->terminal(), text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }
  // Reads `count` bytes, or what there is after far more turns than that takes.
  std::string program_reads(std::size_t count) {
    std::string all;
    char buffer[4096];
    for (int i = 0; i < 500 && all.size() < count; ++i) {
      (void)turn(1);
      pollfd ready{door_->terminal(), POLLIN, 0};
      if (poll(&ready, 1, 0) != 1) continue;
      const ssize_t got = read(door_->terminal(), buffer, sizeof buffer);
      if (got > 0) all.append(buffer, static_cast<std::size_t>(got));
    }
    return all;
  }
  static void say(const Fd& to, const std::string& bytes) {
    ASSERT_EQ(send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  static std::string seen(const Fd& by) {
    char buffer[65536];
    const ssize_t got = recv(by.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    return got > 0 ? std::string(buffer, static_cast<std::size_t>(got)) : "";
  }

  std::string folder_;
  std::optional<TerminalDoor> door_;
};

TEST_F(TerminalDoorTest, WhatIsWrittenIsReturnedAndShownToAll) {
  const Fd one = client();
  const Fd two = client();
  program_writes("hello");
  EXPECT_EQ(turn(), "hello");
  EXPECT_EQ(seen(one), "hello");
  EXPECT_EQ(seen(two), "hello");
  EXPECT_EQ(seen(client()), "hello") << "who comes later is shown what was before";
}

TEST_F(TerminalDoorTest, WhatAnybodyTypesIsRead) {
  const Fd one = client();
  const Fd two = client();
  say(one, input_frame("from one"));
  EXPECT_EQ(program_reads(8), "from one");
  say(two, input_frame(std::string(70'000, 'x')));
  EXPECT_TRUE(program_reads(70'000) == std::string(70'000, 'x'));
}

TEST_F(TerminalDoorTest, FramesMayComeInPieces) {
  const Fd one = client();
  const std::string bytes = input_frame("ab") + window_frame(50, 300) + input_frame("c");
  for (const char c : bytes) {
    say(one, std::string(1, c));
    turn(1);
  }
  EXPECT_EQ(program_reads(3), "abc");
  winsize size{};
  ASSERT_EQ(ioctl(door_->terminal(), TIOCGWINSZ, &size), 0);
  EXPECT_EQ(size.ws_row, 50);
  EXPECT_EQ(size.ws_col, 300);
}

TEST_F(TerminalDoorTest, WhoNeverReadsIsLetGoAndHoldsUpNobody) {
  const Fd lazy = client();
  for (int i = 0; i < 400; ++i) {
    program_writes(std::string(4000, 'x'));
    std::size_t written = 0;
    for (int j = 0; j < 500 && written < 4000; ++j) written += turn(1).size();
    ASSERT_EQ(written, 4000u);
  }
  std::vector<pollfd> list;
  door_->listen(list);
  EXPECT_EQ(list.size(), 2u) << "there is no client any more";
}

TEST_F(TerminalDoorTest, AProgramThatDoesNotReadHoldsUpWhoTypesAndNotUs) {
  Fd one = client();
  for (int i = 0; i < 40; ++i) {
    const std::string bytes = input_frame(std::string(4096, 'x'));
    (void)send(one.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    turn(1);
  }
  one.reset();
  turn();
  std::vector<pollfd> list;
  door_->listen(list);
  EXPECT_EQ(list.size(), 2u) << "a client that has gone is not waited for";
}

TEST_F(TerminalDoorTest, OnlySoManyAtOnce) {
  std::vector<Fd> clients;
  for (std::size_t i = 0; i < TerminalDoor::kMaxClients + 4; ++i) clients.push_back(client());
  std::vector<pollfd> list;
  door_->listen(list);
  EXPECT_EQ(list.size(), 2 + TerminalDoor::kMaxClients);
}

TEST_F(TerminalDoorTest, TheDoorIsItsUsersAndGoesWithIt) {
  struct stat info {};
  ASSERT_EQ(stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  door_.reset();
  EXPECT_EQ(connect_terminal(path(), geteuid()).error().code, ErrorCode::kNotFound);
}

TEST_F(TerminalDoorTest, AnotherDoorInItsPlaceStays) {
  ASSERT_EQ(unlink(path().c_str()), 0);
  const Result<TerminalDoor> next = TerminalDoor::open(path());
  ASSERT_TRUE(next) << next.error().message;
  door_.reset();
  EXPECT_TRUE(connect_terminal(path(), geteuid()));
}

TEST_F(TerminalDoorTest, AnotherUsersDoorIsNotUsed) {
  EXPECT_EQ(connect_terminal(path(), geteuid() + 1).error().code, ErrorCode::kDenied);
}

TEST_F(TerminalDoorTest, ALinkToADoorIsNone) {
  const std::string link = base::join_path(folder_, "13.1");
  std::filesystem::create_symlink(path(), link);
  EXPECT_EQ(connect_terminal(link, geteuid()).error().code, ErrorCode::kDenied);
  const std::string file = base::join_path(folder_, "14.1");
  ASSERT_TRUE(base::write_atomic(file, "x"));
  EXPECT_EQ(connect_terminal(file, geteuid()).error().code, ErrorCode::kDenied);
}

}  // namespace
}  // namespace mete::launch
