// SPDX-License-Identifier: Apache-2.0
// The runner's side of parking. The processes are slots of a grant file in memory: a test writes
// their answers, calls step(), and checks the order and the state: all processes park or none does,
// a refusal or a timeout lets them run, and dead processes are not waited for.
#include "launch/parking.h"

#include <gtest/gtest.h>

#include <memory>

#include "abi/process.h"

namespace mete::launch {
namespace {

using abi::ParkAnswer;
using abi::ParkOrder;
using abi::ParkReason;
using State = Parking::State;

class ParkingTest : public testing::Test {
 protected:
  ParkingTest() {
    abi::GrantCard cards[1] = {};
    abi::GrantSpec spec;
    spec.cards = cards;
    spec.card_count = 1;
    spec.parkable = true;
    cards[0].ceiling_bytes = 1 << 30;
    EXPECT_TRUE(abi::init_grant(grant_.get(), spec));
    // Two processes that live: this one, twice.
    grant_->header.slot_high = 2;
    for (int slot : {0, 1}) grant_->slots[slot].owner = abi::owner_of(*grant_, abi::read_self());
  }

  ParkOrder order() const { return ParkOrder::unpack(grant_->header.park_order.load()); }
  void answer(int slot, ParkAnswer::Kind kind, ParkReason reason = ParkReason::kNone) {
    grant_->slots[slot].park =
        ParkAnswer{order().number, 0, static_cast<std::uint32_t>(reason), kind}.pack();
  }
  void both(ParkAnswer::Kind kind) {
    answer(0, kind);
    answer(1, kind);
  }
  void park() {
    parking_.park(0, 100);
    both(ParkAnswer::kQuiet);
    EXPECT_FALSE(parking_.step(1));
    both(ParkAnswer::kParked);
    EXPECT_TRUE(parking_.step(2)->done);
    EXPECT_EQ(parking_.state(), State::kParked);
  }

  std::unique_ptr<abi::Grant> grant_ = std::make_unique<abi::Grant>();
  Parking parking_{*grant_};
};

TEST_F(ParkingTest, OnDiskIsNeverMoreThanWhatTheLivingHaveThere) {
  grant_->header.park_disk_bytes = 5 << 20;  // left by a process that died during the last park
  park();
  EXPECT_EQ(parking_.on_disk(), Bytes());
  grant_->slots[0].moved_bytes = 4 << 20;
  grant_->header.park_disk_bytes = 2 << 20;
  EXPECT_EQ(parking_.on_disk(), Bytes::from_mib(2));
  grant_->header.park_disk_bytes = 8 << 20;
  EXPECT_EQ(parking_.on_disk(), Bytes::from_mib(4));
}

TEST_F(ParkingTest, HelpersOfTheRunnerAreNotWaitedFor) {
  grant_->slots[1].role = static_cast<std::uint64_t>(abi::SlotRole::kHelper);
  parking_.park(0, 100);
  answer(0, ParkAnswer::kQuiet);
  EXPECT_FALSE(parking_.step(1));
  EXPECT_EQ(order().kind, ParkOrder::kMove);
}

TEST_F(ParkingTest, AllComeToRestBeforeAnybodyMoves) {
  parking_.park(0, 100);
  EXPECT_EQ(order().kind, ParkOrder::kQuiesce);
  answer(0, ParkAnswer::kQuiet);
  EXPECT_FALSE(parking_.step(1));
  EXPECT_EQ(order().kind, ParkOrder::kQuiesce);
  answer(1, ParkAnswer::kQuiet);
  EXPECT_FALSE(parking_.step(2));
  EXPECT_EQ(order().kind, ParkOrder::kMove);
  EXPECT_FALSE(parking_.step(3)) << "answers to the last order are none to this one";
  both(ParkAnswer::kParked);
  const auto end = parking_.step(4);
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->done);
  EXPECT_EQ(parking_.state(), State::kParked);
}

TEST_F(ParkingTest, OneRefusalLetsAllRun) {
  parking_.park(0, 100);
  answer(0, ParkAnswer::kQuiet);
  answer(1, ParkAnswer::kRefused, ParkReason::kManaged);
  const auto end = parking_.step(1);
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->done);
  EXPECT_NE(end->why.find("managed memory"), std::string::npos);
  EXPECT_EQ(order().kind, ParkOrder::kRun);
  EXPECT_EQ(parking_.state(), State::kRunning);
}

TEST_F(ParkingTest, TimeIsUp) {
  parking_.park(0, 100);
  answer(0, ParkAnswer::kQuiet);
  answer(1, ParkAnswer::kNone, ParkReason::kWork);
  EXPECT_FALSE(parking_.step(99));
  const auto end = parking_.step(100);
  ASSERT_TRUE(end);
  EXPECT_NE(end->why.find("did not finish its work"), std::string::npos) << end->why;
  EXPECT_EQ(order().kind, ParkOrder::kRun);
}

TEST_F(ParkingTest, WhoCannotGiveItsMemoryAwayBringsTheOthersBack) {
  parking_.park(0, 100);
  both(ParkAnswer::kQuiet);
  EXPECT_FALSE(parking_.step(1));
  answer(0, ParkAnswer::kParked);
  answer(1, ParkAnswer::kRefused, ParkReason::kNoRoom);
  EXPECT_FALSE(parking_.step(2));
  EXPECT_EQ(order().kind, ParkOrder::kBack);
  both(ParkAnswer::kReturned);
  const auto end = parking_.step(3);
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->done);
  EXPECT_EQ(parking_.state(), State::kRunning);
  EXPECT_EQ(order().kind, ParkOrder::kRun);
}

TEST_F(ParkingTest, WithoutRoomItStaysParked) {
  park();
  parking_.unpark();
  EXPECT_EQ(order().kind, ParkOrder::kBack);
  answer(0, ParkAnswer::kReturned);
  answer(1, ParkAnswer::kRefused, ParkReason::kNoRoom);
  EXPECT_FALSE(parking_.step(3));
  EXPECT_EQ(order().kind, ParkOrder::kMove) << "who is back makes room again";
  both(ParkAnswer::kParked);
  const auto end = parking_.step(4);
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->done);
  EXPECT_TRUE(end->no_room);
  EXPECT_EQ(parking_.state(), State::kParked);
  parking_.unpark();
  both(ParkAnswer::kReturned);
  EXPECT_TRUE(parking_.step(5)->done);
  EXPECT_EQ(order().kind, ParkOrder::kRun);
}

TEST_F(ParkingTest, TheDeadAreNotWaitedFor) {
  parking_.park(0, 100);
  answer(0, ParkAnswer::kQuiet);
  grant_->slots[1].owner = abi::OwnerWord{0x3ffffe, 0, 1, 1}.pack();  // no such process
  EXPECT_FALSE(parking_.step(1));
  EXPECT_EQ(order().kind, ParkOrder::kMove);
}

// A pid of another namespace means nothing here: its process may live.
TEST_F(ParkingTest, PidsOfOtherNamespacesAreNotJudged) {
  parking_.park(0, 100);
  answer(0, ParkAnswer::kQuiet);
  const std::uint32_t ours = abi::OwnerWord::unpack(grant_->slots[0].owner.load()).name_space;
  grant_->slots[1].owner = abi::OwnerWord{0x3ffffe, ours + 1, 1, 1}.pack();
  EXPECT_FALSE(parking_.step(1));
  EXPECT_EQ(order().kind, ParkOrder::kQuiesce);
}

TEST_F(ParkingTest, OneWithoutAThreadNeverAnswers) {
  grant_->slots[1].unparkable = 1ull << static_cast<int>(ParkReason::kThread);
  EXPECT_NE(parking_.obstacle().find("not started to be parkable"), std::string::npos);
  parking_.park(0, 100);
  answer(0, ParkAnswer::kQuiet);
  const auto end = parking_.step(1);
  ASSERT_TRUE(end);
  EXPECT_FALSE(end->done);
}

TEST_F(ParkingTest, TwiceIsOnce) {
  park();
  const std::uint64_t before = order().number;
  parking_.park(5, 100);
  EXPECT_EQ(order().number, before);
  parking_.unpark();
  parking_.unpark();
  EXPECT_EQ(order().number, before + 1);
}

}  // namespace
}  // namespace mete::launch
