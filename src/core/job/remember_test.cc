// SPDX-License-Identifier: Apache-2.0
// Which ended jobs are remembered, per user.
#include <algorithm>

#include "core/test/state_world.h"

namespace mete::core {
namespace {

class RememberTest : public StateWorld {
 protected:
  static Rules few() {
    Rules rules;
    rules.ended_kept = 10;
    return rules;
  }
  RememberTest() { state_ = State(few()); }
  JobId submit_array(const std::string& elements) {
    JobSpec spec = spec_of("0");
    spec.array = *parse_array(elements);
    return submit(spec);
  }
};

TEST_F(RememberTest, WhatOneUserDoesMakesNobodyElsesJobsForgotten) {
  std::vector<JobId> of_bob;
  for (int i = 0; i < 5; ++i) {
    of_bob.push_back(run("0", "bob"));
    ended(of_bob.back());
  }
  for (int i = 0; i < 500; ++i) ended(run("0", "alice"));
  for (const JobId id : of_bob) EXPECT_NE(state_.find(id), nullptr) << to_string(id);
  for (const Job& job : state_.take_forgotten()) EXPECT_EQ(job.spec->user, "alice");
  EXPECT_LT(state_.jobs().size(), 5u + 10 + 100 + 1);
  const State again = State::from_parts(state_.parts(), few());
  ended(run("0", "bob"));
  EXPECT_NE(state_.find(of_bob.front()), nullptr);
  EXPECT_EQ(again.find(of_bob.front())->spec->user, "bob");
}

TEST_F(RememberTest, AnArrayIsForgottenWithItsLastFailureLast) {
  const JobId array = submit_array("0-299");
  EXPECT_EQ(grant().size(), 300u);
  for (std::uint32_t i = 0; i < 300; ++i) {
    const JobId id{array.number, i};
    started(id);
    if (i < 3)
      fails(id);
    else
      ended(id);
  }
  const std::vector<const Job*> known = state_.find_all(array);
  EXPECT_LT(known.size(), 10u + 100 + 1) << "and still they are few";
  EXPECT_EQ(std::count_if(known.begin(), known.end(),
                          [](const Job* job) { return job->outcome == Outcome::kFailed; }),
            1)
      << "whoever waits for all of them hears that not all went well";
  state_ = State::from_parts(state_.parts(), few());
  for (int i = 0; i < 500; ++i) ended(run("0"));
  EXPECT_TRUE(state_.find_all(array).empty());
}

TEST_F(RememberTest, FailuresOfManyArraysAreBoundedToo) {
  for (const char* elements : {"0", "0-1", "0-4"})
    for (int i = 0; i < 300; ++i) {
      const JobId array = submit_array(elements);
      for (const JobId id : grant()) {
        started(id);
        fails(id);
      }
      ASSERT_LT(state_.jobs().size(), 2 * (10u + 100) + 5) << to_string(array);
    }
}

TEST_F(RememberTest, IsOverWhenTheLastOneIsAndAnyWhenTheFirstOneIs) {
  const JobId array = submit_array("0-299");
  EXPECT_EQ(grant().size(), 300u);
  EXPECT_FALSE(state_.is_over(array, true));
  for (std::uint32_t i = 0; i < 300; ++i) {
    EXPECT_FALSE(state_.is_over(array)) << i;
    started({array.number, i});
    ended({array.number, i});
    EXPECT_TRUE(state_.is_over({array.number, i}));
    EXPECT_TRUE(state_.is_over(array, true));
  }
  EXPECT_TRUE(state_.is_over(array)) << "most of them are forgotten by now";
  const JobId last{array.number, 299};
  ASSERT_TRUE(take(Requeue{last, caller("alice")}).ok());
  EXPECT_FALSE(state_.is_over(array));
  EXPECT_FALSE(State::from_parts(state_.parts(), few()).is_over(array));
  EXPECT_EQ(state_.first_of(array)->id.number, array.number);
  EXPECT_EQ(state_.first_of(last)->id, last);
  EXPECT_EQ(state_.first_of({array.number + 1}), nullptr);
}

}  // namespace
}  // namespace mete::core
