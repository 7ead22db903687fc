// SPDX-License-Identifier: Apache-2.0
// The books of a mover: tokens, promises, pieces, the arena and the spill file, without a driver or
// sockets. Each test plays a few connections; promises never exceed the room, and a piece is never
// dropped during its copy. Sizes are small multiples of the granule.
#include "park/books.h"

#include <gtest/gtest.h>

namespace mete::park {
namespace {

using abi::ParkReason;

constexpr uint64_t kM = 1 << 20;
constexpr Token kAlice{1}, kBob{2};

class BooksTest : public testing::Test {
 protected:
  BooksTest() {
    books_.set_goal(256 * kM);
    books_.add_segment(0, 256 * kM);
    EXPECT_FALSE(books_.allow(kAlice, 1000, 1024 * kM));
    EXPECT_FALSE(books_.allow(kBob, 1001, 1024 * kM));
  }
  Answer hello(ConnectionId connection, const Token& token, uint64_t bytes, uint32_t uid) {
    const Books::Hello hello = books_.hello(connection, {token, uid, bytes}, true);
    EXPECT_FALSE(hello.wait);
    return hello.answer;
  }
  Answer begin_out(ConnectionId connection, uint64_t id, uint64_t bytes) {
    return books_.begin_out(connection, id, bytes, &place_);
  }
  Answer out(ConnectionId connection, uint64_t id, uint64_t bytes) {
    const Answer answer = begin_out(connection, id, bytes);
    if (!answer) books_.end_out(connection, id, true);
    return answer;
  }
  Answer begin_in(ConnectionId connection, uint64_t id, uint64_t bytes) {
    return books_.begin_in(connection, id, bytes, &place_);
  }
  static void expect(const Answer& answer, ParkReason reason, uint64_t bytes = 0) {
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->reason, reason);
    EXPECT_EQ(answer->bytes, bytes);
  }

  Books books_;
  const Place* place_ = nullptr;
};

TEST_F(BooksTest, ATokenIsForItsUserAndRoot) {
  expect(hello(1, Token{9}, kM, 1000), ParkReason::kNoMover);
  expect(hello(1, kAlice, kM, 1001), ParkReason::kNoMover);
  expect(out(1, 5, 2 * kM), ParkReason::kNoMover);
  EXPECT_FALSE(hello(1, kAlice, kM, 1000));
  expect(hello(1, kBob, kM, 0), ParkReason::kNoMover);
  EXPECT_FALSE(hello(2, kBob, kM, 0));
}

TEST_F(BooksTest, APieceBelongsToItsConnection) {
  EXPECT_FALSE(hello(1, kAlice, 64 * kM, 1000));
  EXPECT_FALSE(hello(2, kAlice, 64 * kM, 1000));
  EXPECT_FALSE(out(1, 5, 32 * kM));
  expect(begin_in(2, 5, 32 * kM), ParkReason::kDriver);
  expect(books_.drop(2, 5), ParkReason::kDriver);
  expect(begin_in(1, 6, 32 * kM), ParkReason::kDriver);
  expect(begin_in(1, 5, 30 * kM), ParkReason::kDriver);
  expect(begin_in(1, 5, 34 * kM), ParkReason::kDriver);
  EXPECT_FALSE(begin_in(1, 5, 32 * kM));
  EXPECT_EQ(place_->memory[0].bytes, 32 * kM);
}

TEST_F(BooksTest, APieceIsThereOnceItWasWritten) {
  EXPECT_FALSE(hello(1, kAlice, 64 * kM, 1000));
  EXPECT_FALSE(begin_out(1, 5, 32 * kM));
  expect(begin_in(1, 5, 32 * kM), ParkReason::kDriver);
  books_.end_out(1, 5, false);
  expect(begin_in(1, 5, 32 * kM), ParkReason::kDriver);
  EXPECT_FALSE(out(1, 5, 32 * kM));
  expect(out(1, 5, 32 * kM), ParkReason::kDriver);
}

TEST_F(BooksTest, SizesAndNumbersAreChecked) {
  EXPECT_FALSE(hello(1, kAlice, 64 * kM, 1000));
  expect(out(1, 0, 2 * kM), ParkReason::kDriver);
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{4096}, 3 * kM, ~uint64_t{0}})
    expect(out(1, 1, bytes), ParkReason::kDriver);
  expect(out(1, 1, 66 * kM), ParkReason::kNoRoom, 64 * kM);
  expect(books_.allow(Token{}, 0, kM), ParkReason::kDriver);
}

TEST_F(BooksTest, WhatIsPromisedNobodyElseGets) {
  EXPECT_FALSE(hello(1, kAlice, 200 * kM, 1000));
  expect(hello(2, kBob, 100 * kM, 1001), ParkReason::kNoRoom, 56 * kM);
  EXPECT_FALSE(hello(2, kBob, 56 * kM, 1001));
  EXPECT_EQ(books_.room(), 0u);
  for (uint64_t id = 1; id <= 100; ++id) EXPECT_FALSE(out(1, id, 2 * kM));
  expect(out(1, 101, 2 * kM), ParkReason::kNoRoom);
  EXPECT_FALSE(out(2, 1, 56 * kM));
  // A smaller promise gives back the unused part, and no more.
  EXPECT_FALSE(books_.drop(1, 1));
  EXPECT_FALSE(hello(1, kAlice, kM, 1000));
  EXPECT_EQ(books_.room(), 2 * kM);
  EXPECT_EQ(books_.figures(kAlice)->used, 198 * kM);
}

TEST_F(BooksTest, ATokenHasItsLimit) {
  EXPECT_FALSE(books_.allow(kAlice, 1000, 100 * kM));
  EXPECT_FALSE(hello(1, kAlice, 60 * kM, 1000));
  expect(hello(2, kAlice, 60 * kM, 1000), ParkReason::kNoRoom, 40 * kM);
  EXPECT_FALSE(hello(2, kAlice, 40 * kM, 1000));
  // Less than it has: its pieces stay.
  EXPECT_FALSE(books_.allow(kAlice, 1000, 10 * kM));
  expect(hello(1, kAlice, 62 * kM, 1000), ParkReason::kNoRoom, 60 * kM);
  EXPECT_FALSE(out(1, 1, 60 * kM));
}

TEST_F(BooksTest, ATokenHasOneConnectionForEachProcess) {
  for (ConnectionId id = 1; id <= Books::kMaxConnectionsOfToken; ++id)
    ASSERT_FALSE(hello(id, kAlice, 0, 1000));
  expect(hello(5000, kAlice, 0, 1000), ParkReason::kNoMover);
  EXPECT_FALSE(hello(5000, kBob, 0, 1001));
  EXPECT_FALSE(hello(7, kAlice, kM, 1000));
  books_.leave(1);
  EXPECT_FALSE(hello(5001, kAlice, 0, 1000));
}

TEST_F(BooksTest, AForbiddenTokenTakesBackAndGivesNothing) {
  EXPECT_FALSE(hello(1, kAlice, 64 * kM, 1000));
  EXPECT_FALSE(out(1, 5, 32 * kM));
  books_.forbid(kAlice);
  expect(out(1, 6, 2 * kM), ParkReason::kNoMover);
  expect(hello(1, kAlice, 64 * kM, 1000), ParkReason::kNoMover);
  expect(hello(2, kAlice, 64 * kM, 1000), ParkReason::kNoMover);
  EXPECT_FALSE(begin_in(1, 5, 32 * kM));
  books_.end_in(1, 5);
  books_.leave(1);
  EXPECT_EQ(books_.figures(kAlice), std::nullopt);
  EXPECT_TRUE(books_.idle());
  books_.forbid(kBob);
  EXPECT_EQ(books_.figures(kBob), std::nullopt);
}

TEST_F(BooksTest, AllGoesWithTheConnectionButNotUnderACopy) {
  EXPECT_FALSE(hello(1, kAlice, 128 * kM, 1000));
  EXPECT_FALSE(out(1, 1, 32 * kM));
  EXPECT_FALSE(begin_in(1, 1, 32 * kM));
  EXPECT_FALSE(begin_out(1, 2, 16 * kM));
  EXPECT_FALSE(out(1, 3, 8 * kM));
  books_.leave(1);
  EXPECT_EQ(books_.figures().used, 48 * kM);
  books_.end_out(1, 2, true);
  EXPECT_EQ(books_.figures().used, 32 * kM);
  books_.end_in(1, 1);
  EXPECT_TRUE(books_.idle());
  EXPECT_FALSE(books_.known(1));
  EXPECT_EQ(books_.room(), 256 * kM);
}

TEST_F(BooksTest, DroppingAllEndsThePromise) {
  EXPECT_FALSE(hello(1, kAlice, 128 * kM, 1000));
  EXPECT_FALSE(out(1, 1, 32 * kM));
  EXPECT_FALSE(books_.drop(1, 0));
  EXPECT_TRUE(books_.idle());
  expect(out(1, 1, 2 * kM), ParkReason::kNoRoom);
  EXPECT_FALSE(hello(1, kAlice, 128 * kM, 1000));
  EXPECT_FALSE(out(1, 1, 2 * kM));
}

TEST_F(BooksTest, RoomThatIsToComeIsWaitedFor) {
  books_.set_goal(512 * kM);
  Books::Hello first = books_.hello(1, {kAlice, 1000, 300 * kM}, true);
  EXPECT_TRUE(first.wait);
  EXPECT_FALSE(books_.known(1));
  expect(books_.hello(1, {kAlice, 1000, 300 * kM}, false).answer, ParkReason::kNoRoom, 256 * kM);
  expect(hello(2, kAlice, 514 * kM, 1000), ParkReason::kNoRoom, 256 * kM);
  EXPECT_EQ(books_.missing(), 256 * kM);
  books_.add_segment(1, 256 * kM);
  EXPECT_FALSE(hello(1, kAlice, 300 * kM, 1000));
  EXPECT_FALSE(out(1, 1, 300 * kM));
}

TEST_F(BooksTest, OnlyWhatNobodyNeedsGoesWhenTheGoalFalls) {
  books_.add_segment(1, 256 * kM);
  EXPECT_FALSE(hello(1, kAlice, 300 * kM, 1000));
  EXPECT_FALSE(books_.take_surplus());  // both are promised
  books_.leave(1);
  EXPECT_EQ(books_.take_surplus()->segment, 1u);
  EXPECT_FALSE(books_.take_surplus());  // the goal is reached
  books_.set_goal(0);
  EXPECT_EQ(books_.take_surplus()->segment, 0u);
  EXPECT_EQ(books_.figures().size, 0u);
}

TEST_F(BooksTest, WhatDoesNotFitTheArenaGoesToDisk) {
  Books books(100 * kM + 12345);
  books.add_segment(0, 64 * kM);
  ASSERT_FALSE(books.allow(kAlice, 1000, 1024 * kM));
  EXPECT_EQ(books.figures().size, 164 * kM);
  ASSERT_FALSE(books.hello(1, {kAlice, 1000, 164 * kM}, true).answer);
  ASSERT_FALSE(books.begin_out(1, 1, 48 * kM, &place_));
  EXPECT_TRUE(place_->disk.empty());
  ASSERT_FALSE(books.begin_out(1, 2, 116 * kM, &place_));
  EXPECT_EQ(place_->memory[0].bytes, 16 * kM);
  EXPECT_EQ(place_->disk[0].bytes, 100 * kM);
  books.end_out(1, 2, true);
  EXPECT_TRUE(books.take_freed_on_disk().empty());
  ASSERT_FALSE(books.drop(1, 2));
  EXPECT_EQ(books.take_freed_on_disk(), (std::vector<Extent>{{0, 0, 100 * kM}}));
  EXPECT_TRUE(books.take_freed_on_disk().empty());
}

TEST_F(BooksTest, AnArenaThatGrowsIsPreferredToTheDisk) {
  Books books(100 * kM);
  books.set_goal(128 * kM);
  books.add_segment(0, 64 * kM);
  ASSERT_FALSE(books.allow(kAlice, 1000, 1024 * kM));
  EXPECT_TRUE(books.hello(1, {kAlice, 1000, 80 * kM}, true).wait);
  // More than the arena will ever hold: there is nothing to wait for.
  const Books::Hello large = books.hello(2, {kAlice, 1000, 150 * kM}, true);
  EXPECT_FALSE(large.wait || large.answer);
  books.leave(2);
  const Books::Hello late = books.hello(1, {kAlice, 1000, 80 * kM}, false);
  EXPECT_FALSE(late.wait || late.answer);
}

}  // namespace
}  // namespace mete::park
