// SPDX-License-Identifier: Apache-2.0
// What is done about idle jobs, and about memory outside meters. Tests report idleness and escapes
// to a fake daemon (state_world.h) with each policy, move its clock past each limit, and compare
// the types of the events that follow.
#include <gtest/gtest.h>

#include "core/test/state_world.h"

namespace mete::core {
namespace {

class WatchTest : public StateWorld {
 protected:
  struct Steps {
    std::uint64_t warn_s = 0;
    std::uint64_t notify_s = 0;
    std::uint64_t park_s = 0;
    std::uint64_t stop_s = 0;
  };
  void rules(Steps steps) {
    Rules rules;
    rules.idle_warn_s = steps.warn_s;
    rules.idle_notify_s = steps.notify_s;
    rules.idle_park_s = steps.park_s;
    rules.idle_stop_s = steps.stop_s;
    state_ = State(rules);
  }
  void idle(JobId id, std::int64_t seconds) {
    ASSERT_TRUE(take(Idle{id, WallTime{now_.ms - seconds * 1000}}).ok());
  }
  // The event types that followed from the last input.
  std::vector<std::string> last() const {
    std::vector<std::string> types;
    for (std::size_t i = events_.size() - happened_; i < events_.size(); ++i)
      types.emplace_back(type_of(events_[i].what));
    return types;
  }
  std::string remark(JobId id) { return wire::remark_text(remark_of(job(id), state_.rules())); }
  static JobSpec preemptible(const std::string& gpu) {
    JobSpec spec = spec_of(gpu);
    spec.preemptible = true;
    return spec;
  }
  static Escape escape(std::uint64_t mib, std::int32_t pid = 412) {
    return {pid, 99, "GPU-0", 0, Bytes::from_mib(mib), Bytes(), "python"};
  }
};
using Types = std::vector<std::string>;

TEST_F(WatchTest, WithoutAPolicyAnIdleSpanIsRecordedAndNothingIsDone) {
  const JobId id = run(preemptible("10G"));
  idle(id, 59);
  EXPECT_EQ(last(), Types{});
  idle(id, 60);
  EXPECT_EQ(last(), Types{"job.idle"});
  later(100'000);
  idle(id, 100'060);
  EXPECT_EQ(last(), Types{});
  EXPECT_EQ(remark(id), "");
  ASSERT_TRUE(take(Active{id}).ok());
  EXPECT_EQ(last(), Types{"job.active"});
  ASSERT_TRUE(take(Active{id}).ok());
  EXPECT_EQ(last(), Types{});
}

TEST_F(WatchTest, EachStepHasItsOwnTime) {
  rules({.warn_s = 100, .notify_s = 200, .park_s = 0, .stop_s = 400});
  const JobId id = run("10G");
  idle(id, 100);
  EXPECT_EQ(last(), Types{"job.idle"});
  EXPECT_EQ(job(id).idle->step, IdleStep::kWarned);
  EXPECT_NE(remark(id).find("is ended at"), std::string::npos) << remark(id);
  later(100);
  idle(id, 200);
  EXPECT_EQ(job(id).idle->step, IdleStep::kNotified);
  later(199);
  idle(id, 399);
  EXPECT_EQ(last(), Types{});
  later(1);
  idle(id, 400);
  EXPECT_EQ(last(), Types{"job.stopping"});
  EXPECT_EQ(state_of(id), JobState::kStopping);
  ended(id, exit_with(143));
  EXPECT_EQ(job(id).outcome, Outcome::kCancelled);
  EXPECT_EQ(remark(id),
            "ended because it did nothing on its cards for 6 min 40 s (idle.stop_s is 400)");
}

TEST_F(WatchTest, AJobThatWorksAgainBeginsAnew) {
  rules({.warn_s = 100, .notify_s = 0, .park_s = 0, .stop_s = 400});
  const JobId id = run("10G");
  idle(id, 399);
  ASSERT_TRUE(take(Active{id}).ok());
  EXPECT_EQ(remark(id), "");
  later(200);
  idle(id, 150);
  EXPECT_EQ(last(), Types{"job.idle"});
  EXPECT_EQ(state_of(id), JobState::kRunning);
}

TEST_F(WatchTest, WhatCanBeParkedIsParkedAndNotEnded) {
  rules({.warn_s = 0, .notify_s = 0, .park_s = 100, .stop_s = 100});
  const JobId parks = run(preemptible("10G"));
  const JobId stays = run("10G");
  later(500);
  idle(parks, 400);
  EXPECT_EQ(state_of(parks), JobState::kParking);
  idle(stays, 400);
  EXPECT_EQ(state_of(stays), JobState::kStopping);
  // A refusal that is not for good: the job is asked again after a pause, and ended meanwhile only
  // if that is the policy.
  ASSERT_TRUE(take(ParkReport{parks, 0, false, {}, {}, "busy"}).ok());
  idle(parks, 401);
  EXPECT_EQ(state_of(parks), JobState::kStopping);
}

TEST_F(WatchTest, TheJobsOwnTimeCountsBeforeTheRules) {
  rules({.warn_s = 10, .notify_s = 0, .park_s = 100, .stop_s = 0});
  JobSpec sooner = spec_of("10G");
  sooner.idle_s = 40;
  JobSpec never = preemptible("10G");
  never.idle_s = 0;
  const JobId early = run(sooner);
  const JobId late = run(preemptible("10G"));
  const JobId stays = run(never);
  later(5'000);
  idle(early, 39);
  EXPECT_EQ(state_of(early), JobState::kRunning);
  EXPECT_NE(remark(early).find("is parked at"), std::string::npos) << remark(early);
  idle(stays, 39);
  EXPECT_EQ(remark(stays).find("is parked at"), std::string::npos) << remark(stays);
  idle(early, 40);
  EXPECT_EQ(state_of(early), JobState::kParking);
  EXPECT_EQ(job(early).park->cause, ParkCause::kIdle);
  idle(late, 99);
  EXPECT_EQ(state_of(late), JobState::kRunning);
  idle(late, 100);
  EXPECT_EQ(state_of(late), JobState::kParking);
  idle(stays, 4'000);
  EXPECT_EQ(state_of(stays), JobState::kRunning);
}

TEST_F(WatchTest, AJobWithAnIdleTimeIsParkedWithoutARule) {
  JobSpec spec = spec_of("10G");
  spec.idle_s = 600;
  EXPECT_TRUE(is_parkable(spec));
  const JobId id = run(spec);
  later(5'000);
  idle(id, 600);
  EXPECT_EQ(state_of(id), JobState::kParking);
}

TEST_F(WatchTest, OnlyJobsThatRunAreIdle) {
  rules({.warn_s = 0, .notify_s = 0, .park_s = 0, .stop_s = 1});
  const JobId waits = submit("80G");
  idle(waits, 1000);
  EXPECT_EQ(last(), Types{});
  idle(JobId{99}, 1000);
  EXPECT_EQ(last(), Types{});
}

TEST_F(WatchTest, AnEscapeIsToldOnceAndAgainWhenItHasGrownMuch) {
  const JobId id = run("10G");
  ASSERT_TRUE(take(Escaped{id, escape(1000)}).ok());
  EXPECT_EQ(last(), Types{"escape.seen"});
  EXPECT_EQ(remark(id), "escape: process 412 (python) holds 1000 MiB of card 0 outside its meter");
  ASSERT_TRUE(take(Escaped{id, escape(1400)}).ok());
  EXPECT_EQ(last(), Types{});
  ASSERT_TRUE(take(Escaped{id, escape(1500)}).ok());
  EXPECT_EQ(last(), Types{"escape.seen"});
  ASSERT_TRUE(take(Escaped{id, escape(200, 413)}).ok());
  EXPECT_EQ(last(), Types{"escape.seen"});
  EXPECT_EQ(job(id).escapes.size(), 2u);
  EXPECT_EQ(state_of(id), JobState::kRunning);
  // A reused pid is another process.
  Escape again = escape(200);
  again.start_ticks = 100;
  ASSERT_TRUE(take(Escaped{id, again}).ok());
  EXPECT_EQ(last(), Types{"escape.seen"});
}

TEST_F(WatchTest, BeyondDoubtItEndsTheJobWhereThatIsThePolicy) {
  const JobId id = run("10G");
  ASSERT_TRUE(take(Escaped{id, escape(1000), true}).ok());
  EXPECT_EQ(last(), (Types{"escape.seen", "job.stopping"}));
  ASSERT_TRUE(take(Escaped{id, escape(9000), true}).ok());
  EXPECT_EQ(last(), Types{});
  ended(id, exit_with(143));
  EXPECT_EQ(job(id).outcome, Outcome::kEscaped);
  EXPECT_NE(remark(id).find("process 412"), std::string::npos);
  ASSERT_TRUE(take(Requeue{id, caller("alice")}).ok());
  EXPECT_EQ(remark(id), "");
}

TEST_F(WatchTest, OfManyEscapesTheLastAreKept) {
  const JobId id = run("10G");
  for (int pid = 1; pid <= 100; ++pid) ASSERT_TRUE(take(Escaped{id, escape(100, pid)}).ok());
  ASSERT_EQ(job(id).escapes.size(), kEscapesKept);
  EXPECT_EQ(job(id).escapes.back().pid, 100);
}

}  // namespace
}  // namespace mete::core
