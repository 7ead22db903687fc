// SPDX-License-Identifier: Apache-2.0
// The other daemon is a real process with its own book.
#include "daemon/claims_keeper.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "tests/support/manual_loop.h"

namespace mete::daemon {
namespace {

constexpr char kCard[] = "GPU-00000000-0000-0000-0000-000000000001";

std::vector<core::GrantedCard> share(std::uint64_t gib) {
  core::GrantedCard card;
  card.uuid = kCard;
  card.bytes = Bytes::from_gib(gib);
  return {card};
}

class ClaimsKeeperTest : public testing::Test {
 protected:
  ClaimsKeeperTest() {
    char name[] = "/tmp/mete-claims-XXXXXX";
    folder_ = mkdtemp(name);
    keeper_.emplace(*node::ClaimBook::open({folder_}, "alice"), loop_.loop(),
                    [this] { ++settled_; });
    core::Pool pool;
    pool.cards.emplace_back().card = {0, kCard, "H200", Bytes::from_gib(80)};
    keeper_->see(pool);
  }
  ~ClaimsKeeperTest() override {
    if (other_ > 0) end_other();
    keeper_.reset();
    std::filesystem::remove_all(folder_);
  }
  // Another daemon that holds this much until end_other().
  void start_other(std::uint64_t gib) {
    int ready[2];
    ASSERT_EQ(pipe(ready), 0);
    other_ = fork();
    if (other_ == 0) {
      Result<node::ClaimBook> book = node::ClaimBook::open({folder_}, "bob");
      node::Claim claim;
      claim.uuid = kCard;
      claim.bytes = Bytes::from_gib(gib);
      claim.job = "1";
      const bool held = book && book->hold({claim}).ok();
      (void)!write(ready[1], held ? "1" : "0", 1);
      for (;;) pause();
    }
    char held = '0';
    ASSERT_EQ(read(ready[0], &held, 1), 1);
    ASSERT_EQ(held, '1');
    close(ready[0]);
    close(ready[1]);
  }
  void end_other() {
    kill(other_, SIGKILL);
    waitpid(other_, nullptr, 0);
    other_ = -1;
  }
  std::string folder_;
  support::ManualLoop loop_;
  int settled_ = 0;
  pid_t other_ = -1;
  std::optional<ClaimsKeeper> keeper_;
};

TEST_F(ClaimsKeeperTest, WhatNobodyElseHasIsOurs) {
  keeper_->begin();
  EXPECT_TRUE(keeper_->reserve({1}, share(40), std::nullopt));
  EXPECT_TRUE(keeper_->reserve({1}, share(40), std::nullopt)) << "asked once more";
  EXPECT_TRUE(keeper_->reserve({2}, share(40), std::nullopt));
  EXPECT_FALSE(keeper_->reserve({3}, share(1), std::nullopt)) << "the card is full";
  keeper_->release({1});
  EXPECT_TRUE(keeper_->reserve({3}, share(1), std::nullopt));
}

TEST_F(ClaimsKeeperTest, WhatAnotherDaemonHoldsIsNot) {
  start_other(60);
  keeper_->begin();
  EXPECT_FALSE(keeper_->reserve({1}, share(40), std::nullopt));
  EXPECT_TRUE(keeper_->reserve({1}, share(20), std::nullopt));
  ASSERT_EQ(keeper_->others().size(), 1u);
  EXPECT_EQ(keeper_->others()[0].claim.bytes, Bytes::from_gib(60));
  end_other();
  EXPECT_TRUE(keeper_->others().empty()) << "without a runner its claim ends with it";
  EXPECT_TRUE(keeper_->reserve({2}, share(60), std::nullopt));
}

TEST_F(ClaimsKeeperTest, WhatWasPromisedBeforeARestartStaysPromised) {
  start_other(60);
  EXPECT_TRUE(keeper_->reserve({1}, share(40), std::nullopt)) << "before begin()";
  keeper_->begin();
  EXPECT_TRUE(keeper_->reserve({1}, share(40), std::nullopt));
  EXPECT_FALSE(keeper_->reserve({2}, share(1), std::nullopt));
}

TEST_F(ClaimsKeeperTest, AJobThatGrowsIsAskedForTheDifference) {
  keeper_->begin();
  ASSERT_TRUE(keeper_->reserve({1}, share(50), std::nullopt));
  EXPECT_TRUE(keeper_->reserve({1}, share(80), std::nullopt)) << "30 more, not 80 more";
  EXPECT_FALSE(keeper_->reserve({2}, share(1), std::nullopt));
  EXPECT_TRUE(keeper_->reserve({1}, share(10), std::nullopt));
  EXPECT_TRUE(keeper_->reserve({2}, share(70), std::nullopt));
}

TEST_F(ClaimsKeeperTest, OnlyWantedJobsAreKept) {
  keeper_->begin();
  ASSERT_TRUE(keeper_->reserve({1}, share(40), std::nullopt));
  ASSERT_TRUE(keeper_->reserve({2}, share(40), std::nullopt));
  keeper_->keep_only([](core::JobId id) { return id == core::JobId{2}; });
  EXPECT_TRUE(keeper_->reserve({3}, share(40), std::nullopt));
}

TEST_F(ClaimsKeeperTest, WithoutAFolderADaemonIsAlone) {
  ClaimsKeeper alone(std::nullopt, loop_.loop(), [] {});
  alone.begin();
  EXPECT_TRUE(alone.reserve({1}, share(500), std::nullopt));
  EXPECT_TRUE(alone.others().empty());
}

}  // namespace
}  // namespace mete::daemon
