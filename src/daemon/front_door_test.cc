// SPDX-License-Identifier: Apache-2.0
// Real sockets in a folder of the test.
#include "daemon/front_door.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "net/address_file.h"
#include "net/daemon_start.h"

namespace mete::daemon {
namespace {

namespace fs = std::filesystem;

class FrontDoorTest : public testing::Test {
 protected:
  FrontDoorTest() {
    char name[] = "/tmp/mete-door-XXXXXX";
    root_ = mkdtemp(name);
    state_ = root_ + "/state";
    runtime_ = root_ + "/run";
    socket_ = runtime_ + "/mete/meted.sock";
  }
  ~FrontDoorTest() override {
    door_.reset();
    fs::remove_all(root_);
  }

  void open(bool system = false) {
    fs::create_directories(state_);
    Result<net::Listener> listener = net::claim_place({socket_, system});
    ASSERT_TRUE(listener) << listener.error().message;
    ASSERT_TRUE(listener->open_door());
    door_.emplace(*std::move(listener), state_, system,
                  [this](const std::string& line) { log_.push_back(line); });
    ASSERT_TRUE(door_->take_socket());
  }
  // The socket that a client finds through the state folder.
  std::string announced() const {
    const Result<net::Address> address = net::read_address(state_);
    return address && address->alive ? address->socket : "";
  }

  std::string root_, state_, runtime_, socket_;
  std::vector<std::string> log_;
  std::optional<FrontDoor> door_;
};

TEST_F(FrontDoorTest, SaysInTheStateFolderWhereItListens) {
  open();
  EXPECT_EQ(door_->path(), socket_);
  EXPECT_EQ(announced(), socket_);
  EXPECT_FALSE(door_->mend()) << "the socket is where it was";
  EXPECT_EQ(announced(), socket_);
  EXPECT_TRUE(log_.empty());
  door_.reset();
  EXPECT_EQ(announced(), "") << "no daemon any more";
}

TEST_F(FrontDoorTest, ARemovedSocketIsMadeAgainAtItsPath) {
  open();
  ASSERT_EQ(unlink(socket_.c_str()), 0);
  EXPECT_TRUE(door_->mend());
  EXPECT_EQ(door_->path(), socket_);
  EXPECT_TRUE(fs::is_socket(socket_));
  EXPECT_TRUE(door_->take_socket());
  EXPECT_EQ(log_, std::vector{"the socket " + socket_ + " was removed; listening at " + socket_});
  EXPECT_FALSE(door_->mend());
  EXPECT_EQ(log_.size(), 1u);
}

TEST_F(FrontDoorTest, AFolderThatWasRemovedIsMadeAgainUnlessALoginMakesIt) {
  open();
  fs::remove_all(runtime_ + "/mete");
  EXPECT_TRUE(door_->mend());
  EXPECT_EQ(door_->path(), socket_);
  // The runtime folder itself is made by a login.
  fs::remove_all(runtime_);
  EXPECT_TRUE(door_->mend());
  EXPECT_EQ(door_->path(), net::socket_in_state(state_));
  EXPECT_FALSE(fs::exists(runtime_));
  EXPECT_EQ(announced(), net::socket_in_state(state_));
  EXPECT_TRUE(net::read_address(state_)->was_at(socket_)) << "for clients that look there";
}

TEST_F(FrontDoorTest, AStateFolderWithALongPathGetsASocketInTmp) {
  state_ += "/" + std::string(100, 'x');
  open();
  fs::remove_all(runtime_);
  ASSERT_TRUE(door_->mend());
  const std::string path = door_->path();
  EXPECT_EQ(path.rfind("/tmp/mete-", 0), 0u) << path;
  EXPECT_EQ(announced(), path);
  // Removed once more, it is made again in the same folder.
  ASSERT_EQ(unlink(path.c_str()), 0);
  EXPECT_TRUE(door_->mend());
  EXPECT_EQ(door_->path(), path);
  door_.reset();
  EXPECT_FALSE(fs::exists(fs::path(path).parent_path())) << "nothing is left in /tmp";
}

TEST_F(FrontDoorTest, TheMachinesDaemonStaysAtItsPathAndSaysOnceWhatIsInTheWay) {
  open(true);
  fs::remove_all(runtime_ + "/mete");
  ASSERT_TRUE(base::write_atomic(runtime_ + "/mete", "in the way"));
  EXPECT_FALSE(door_->mend());
  EXPECT_FALSE(door_->mend());
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_EQ(log_[0].rfind("the socket is gone, and cannot be made again: ", 0), 0u) << log_[0];
  ASSERT_EQ(unlink((runtime_ + "/mete").c_str()), 0);
  EXPECT_TRUE(door_->mend());
  EXPECT_EQ(door_->path(), socket_);
}

TEST_F(FrontDoorTest, AnAddressThatCannotBeWrittenIsWrittenLater) {
  fs::create_directories(state_ + "/meted.address");  // no file can be written there
  open();
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_EQ(log_[0].rfind("clients may not find this daemon: ", 0), 0u) << log_[0];
  EXPECT_FALSE(door_->mend());
  EXPECT_EQ(log_.size(), 1u) << "said once";
  fs::remove(state_ + "/meted.address");
  EXPECT_FALSE(door_->mend());
  EXPECT_EQ(announced(), socket_);
}

}  // namespace
}  // namespace mete::daemon
