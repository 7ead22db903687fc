// SPDX-License-Identifier: Apache-2.0
#include "serve/work_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mete::serve {
namespace {

constexpr uid_t kAlice = 1000, kBob = 1001, kCarol = 1002;

class WorkQueueTest : public testing::Test {
 protected:
  WorkQueue::Work note(const std::string& what) {
    return [this, what](const WorkQueue::Place& place) {
      done_ += what;
      if (place != nullptr) places_.push_back(place);
    };
  }
  // The tasks done, in order; "A" is a large answer that stays in memory.
  std::string work(std::size_t most = 1000) {
    done_.clear();
    for (std::size_t i = 0; i < most; ++i) {
      std::optional<std::function<void()>> next = queue_.next();
      if (!next) break;
      (*next)();
    }
    return done_;
  }

  int ready_ = 0;
  WorkQueue queue_{[this] { ++ready_; }};
  std::vector<WorkQueue::Place> places_;
  std::string done_;
};

TEST_F(WorkQueueTest, UsersTakeTurnsHoweverMuchOneAsks) {
  for (int i = 0; i < 300; ++i) queue_.add(kAlice, note("a"));
  queue_.add(kBob, note("b"));
  queue_.add(kCarol, note("c"));
  queue_.add(kBob, note("B"));
  EXPECT_EQ(work(6), "abcaBa");
  EXPECT_EQ(queue_.size(), 297u);
  queue_.add(kBob, note("b"));
  EXPECT_EQ(work(2), "ba") << "who comes later waits for one piece of the other's, not for all";
}

TEST_F(WorkQueueTest, WorkOfOneUserKeepsItsOrder) {
  queue_.add(kAlice, note("1"));
  queue_.add_large(kAlice, note("2"));
  queue_.add(kAlice, note("3"));
  queue_.add_large(kAlice, note("4"));
  EXPECT_EQ(work(), "1234");
  EXPECT_TRUE(queue_.empty());
}

TEST_F(WorkQueueTest, LargeAnswersThatAreNotReadKeepNoneButTheirOwnKindWaiting) {
  for (int i = 0; i < 1500; ++i) queue_.add_large(kAlice, note("A"));
  queue_.add_large(kBob, note("B"));
  queue_.add(kAlice, note("a"));
  EXPECT_EQ(work(), "ABAAAa");
  EXPECT_EQ(places_.size(), WorkQueue::kPlaces + 1);
  EXPECT_EQ(queue_.size(), 1500 - WorkQueue::kPlaces);
  EXPECT_EQ(work(), "") << "the rest waits, and costs nothing";
  EXPECT_EQ(ready_, 0);
  places_.pop_back();
  EXPECT_EQ(ready_, 1);
  EXPECT_EQ(work(), "A");
}

TEST_F(WorkQueueTest, APlaceThatIsNotKeptIsGivenBackAtOnce) {
  for (int i = 0; i < 10; ++i)
    queue_.add_large(kAlice, [this](const WorkQueue::Place&) { done_ += "A"; });
  EXPECT_EQ(work(), "AAAAAAAAAA");
  EXPECT_EQ(ready_, 10);
}

TEST_F(WorkQueueTest, PlacesMayOutliveTheQueue) {
  WorkQueue::Place place;
  {
    WorkQueue queue([this] { ++ready_; });
    queue.add_large(kAlice, [&](const WorkQueue::Place& own) { place = own; });
    (*queue.next())();
  }
  place.reset();
  EXPECT_EQ(ready_, 0);
}

}  // namespace
}  // namespace mete::serve
