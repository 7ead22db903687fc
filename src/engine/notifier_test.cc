// SPDX-License-Identifier: Apache-2.0
// Notifications from a log in memory: which events make one, retries with growing pauses, bounds
// per user and in total, and the position that is saved for the next daemon. Deliveries end when a
// test says so, in any order; time moves only when a test moves it. Every case compares the ids of
// the deliveries.
#include "engine/notifier.h"

#include <gtest/gtest.h>

#include "tests/support/manual_loop.h"
#include "wire/event.h"

namespace mete::engine {
namespace {

using core::JobId;
using core::NotifyOn;

// A log, jobs by their number, and a courier that a test controls.
class NotifierTest : public testing::Test {
 protected:
  NotifierTest() { start(0); }

  void start(std::uint64_t position) {
    under_way_.clear();
    Notifier::Hooks hooks;
    hooks.events = [this](std::uint64_t after, std::size_t limit) {
      std::vector<seam::StoredEvent> found;
      for (const seam::StoredEvent& event : log_)
        if (event.seq > after && found.size() < limit) found.push_back(event);
      return Result<std::vector<seam::StoredEvent>>(found);
    };
    hooks.find = [this](JobId id) {
      const auto found = jobs_.find(id);
      return found == jobs_.end() ? nullptr : &found->second;
    };
    hooks.deliver = [this](const Delivery& delivery, Notifier::Done done) {
      under_way_.emplace_back(delivery, std::move(done));
    };
    hooks.save = [this](std::uint64_t seq) { saved_ = seq; };
    hooks.log = [this](const std::string& text) { said_.push_back(text); };
    notifier_ = std::make_unique<Notifier>(std::move(hooks), loop_.loop(), loop_, "gpu1");
    notifier_->begin(position);
  }

  JobId job(std::uint64_t number, std::uint32_t uid = 1000, std::size_t targets = 1) {
    core::JobSpec spec;
    spec.name = "train";
    spec.user = "alice";
    spec.uid = uid;
    for (std::size_t i = 0; i < targets; ++i)
      spec.notify.to.push_back({core::NotifyWay::kWebhook, "https://u:p@h/" + std::to_string(i)});
    core::Job& job = jobs_[JobId{number}];
    job.id = JobId{number};
    job.spec = spec;
    return job.id;
  }
  void happens(const core::Happened& what) {
    log_.push_back({log_.size() + 1, 1'800'000'000'000, std::string(core::type_of(what)),
                    wire::job_of(what), wire::encode(what, 1)});
    notifier_->pump();
  }
  void ends(JobId id, core::Outcome outcome = core::Outcome::kOk) {
    happens(core::JobEnded{id, outcome, {}});
  }
  void answer(Result<void> result = {}) {
    ASSERT_FALSE(under_way_.empty());
    const Notifier::Done done = std::move(under_way_.front().second);
    under_way_.erase(under_way_.begin());
    done(std::move(result));
  }
  std::vector<std::string> ids() const {
    std::vector<std::string> ids;
    for (const auto& [delivery, done] : under_way_) ids.push_back(delivery.what.id);
    return ids;
  }

  support::ManualLoop loop_;
  std::vector<seam::StoredEvent> log_;
  std::map<JobId, core::Job> jobs_;
  std::vector<std::pair<Delivery, Notifier::Done>> under_way_;
  std::uint64_t saved_ = 0;
  std::vector<std::string> said_;
  std::unique_ptr<Notifier> notifier_;
};
using Ids = std::vector<std::string>;

TEST_F(NotifierTest, TellsEveryTargetOfAnEndOnce) {
  const JobId id = job(7, 1000, 2);
  happens(core::JobStarted{id, {1, 1}});
  ends(id);
  EXPECT_EQ(ids(), (Ids{"2-0", "2-1"}));
  const wire::Notification& told = under_way_[0].first.what;
  EXPECT_EQ(told.text, "job 7 (train) of alice has ended: ok");
  EXPECT_EQ(told.host, "gpu1");
  answer();
  answer();
  notifier_->pump();
  EXPECT_TRUE(under_way_.empty());
  EXPECT_EQ(notifier_->counts(), (Notifier::Counts{0, 2, 0, 0}));
  EXPECT_EQ(saved_, 2u);
}

TEST_F(NotifierTest, NobodyIsToldWhoDidNotAsk) {
  jobs_[JobId{3}].id = JobId{3};
  ends(JobId{3});
  ends(JobId{99});
  EXPECT_TRUE(under_way_.empty());
}

TEST_F(NotifierTest, OnlyOfWhatWasAskedFor) {
  const JobId id = job(7);
  core::JobSpec spec = *jobs_[id].spec;
  spec.notify.on = {NotifyOn::kStart, NotifyOn::kOom};
  jobs_[id].spec = spec;
  happens(core::JobStarted{id, {1, 1}});
  happens(core::JobIdle{id, {{5}, core::IdleStep::kWarned}});
  happens(core::JobRequeued{id, core::Outcome::kFailed, {}, {}, {}});
  happens(core::JobRequeued{id, core::Outcome::kGpuOom, {}, {}, {}});
  ends(id);
  // Notifications of the administrator's policy are sent too.
  happens(core::JobIdle{id, {{5}, core::IdleStep::kNotified}});
  for (const std::string expected : {"1-0", "4-0", "6-0"}) {
    EXPECT_EQ(ids(), Ids{expected});
    answer();
  }
  EXPECT_TRUE(under_way_.empty());
}

TEST_F(NotifierTest, NotificationsOfAJobReachATargetInOrder) {
  const JobId id = job(7);
  core::JobSpec spec = *jobs_[id].spec;
  spec.notify.on = {NotifyOn::kStart, NotifyOn::kEnd};
  jobs_[id].spec = spec;
  happens(core::JobStarted{id, {1, 1}});
  ends(id);
  EXPECT_EQ(ids(), Ids{"1-0"});
  ends(job(8));
  EXPECT_EQ(ids(), (Ids{"1-0", "3-0"})) << "another job is not held up";
  answer(Error::io("no"));
  EXPECT_EQ(ids(), (Ids{"3-0", "2-0"})) << "one that failed holds up no other";
}

TEST_F(NotifierTest, AFailureIsTriedAgainWithLongerPausesAndThenGivenUp) {
  ends(job(7));
  for (const seam::Milliseconds pause : Notifier::kPauses) {
    answer(Error::io("its host refused it"));
    EXPECT_TRUE(under_way_.empty());
    loop_.advance(pause - seam::Milliseconds(1));
    EXPECT_TRUE(under_way_.empty());
    loop_.advance(seam::Milliseconds(1));
    ASSERT_EQ(ids(), Ids{"1-0"});
  }
  EXPECT_EQ(saved_, 0u) << "no notification was sent for it yet";
  answer(Error::io("its host refused it"));
  EXPECT_EQ(notifier_->counts(), (Notifier::Counts{0, 0, 1, 0}));
  EXPECT_EQ(saved_, 1u);
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_EQ(said_[0],
            "notification 1-0 of job 7 to webhook:https://h/… is given up: its host refused it");
}

TEST_F(NotifierTest, AShortPauseDoesNotWaitForALongOne) {
  ends(job(7));
  for (const seam::Milliseconds pause : {Notifier::kPauses[0], Notifier::kPauses[1]}) {
    answer(Error::io("no"));
    loop_.advance(pause);
  }
  answer(Error::io("no"));  // 30 s from now
  ends(job(8));
  answer(Error::io("no"));
  loop_.advance(Notifier::kPauses[0]);
  EXPECT_EQ(ids(), Ids{"2-0"});
}

TEST_F(NotifierTest, OneThatNeverAnswersDoesNotKeepOthersWaiting) {
  for (std::uint64_t number = 1; number <= 10; ++number) ends(job(number, 1000));
  EXPECT_EQ(under_way_.size(), Notifier::kMaxAtOnceOfUser);
  ends(job(11, 1001));
  EXPECT_EQ(under_way_.back().first.uid, 1001u);
  for (std::uint64_t number = 12; number <= 20; ++number) ends(job(number, 1002));
  EXPECT_EQ(under_way_.size(), Notifier::kMaxAtOnce);
}

TEST_F(NotifierTest, TooManyAreDroppedAndCounted) {
  for (std::uint64_t number = 1; number <= 100; ++number) ends(job(number, 1000));
  EXPECT_EQ(notifier_->counts().waiting, Notifier::kMaxWaitingOfUser);
  EXPECT_EQ(notifier_->counts().dropped, 100 - Notifier::kMaxWaitingOfUser);
  EXPECT_EQ(said_.size(), 1u) << "said once";
  for (std::uint32_t user = 1; user <= 10; ++user)
    for (std::uint64_t number = 1; number <= 50; ++number)
      ends(job(1000 * user + number, 2000 + user));
  EXPECT_EQ(notifier_->counts().waiting, Notifier::kMaxWaiting);
}

TEST_F(NotifierTest, AnotherDaemonTellsWhatThisOneDidNot) {
  ends(job(7));
  ends(job(8, 1001));
  answer(Error::io("no"));
  answer();  // the second
  EXPECT_EQ(saved_, 0u);
  start(saved_);
  EXPECT_EQ(ids(), (Ids{"1-0", "2-0"})) << "the second twice, by the same name";
  answer();
  answer();
  EXPECT_EQ(saved_, 2u);
  start(saved_);
  EXPECT_TRUE(under_way_.empty());
}

}  // namespace
}  // namespace mete::engine
