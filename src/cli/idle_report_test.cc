// SPDX-License-Identifier: Apache-2.0
#include "cli/idle_report.h"

#include <gtest/gtest.h>

namespace mete::cli {
namespace {

using core::JobId;

constexpr std::int64_t kHour = 3'600'000;
constexpr std::uint64_t kGibHour = 1024 * 3600;

// A log with times in hours.
class IdleReportTest : public testing::Test {
 protected:
  void happens(double hour, core::Happened what) {
    events_.push_back({events_.size() + 1, at(hour), std::move(what)});
  }
  static WallTime at(double hour) {
    return WallTime{1'800'000'000'000 + static_cast<std::int64_t>(hour * kHour)};
  }
  JobId runs(double hour, std::uint64_t gib, bool preemptible = false) {
    core::JobSpec spec;
    spec.name = "train";
    spec.user = "alice";
    spec.preemptible = preemptible;
    spec.request.gpu = *core::parse_gpu("8G");
    const JobId id{++last_};
    happens(hour, core::JobSubmitted{id, spec, {}});
    happens(hour, core::JobGranted{id, {{0, "GPU-0", Bytes::from_gib(gib), false}}});
    return id;
  }
  void idle(JobId id, double since) {
    happens(since + 0.02, core::JobIdle{id, {at(since), core::IdleStep::kSeen}});
  }
  void works(double hour, JobId id) { happens(hour, core::JobActive{id}); }
  void ends(double hour, JobId id) { happens(hour, core::JobEnded{id, core::Outcome::kOk, {}}); }
  IdleReport report(IdlePolicy policy, double from = 0) {
    return idle_report(events_, policy, at(from), at(10));
  }
  static IdlePolicy hours(double warn, double park, double stop) {
    return {static_cast<std::uint64_t>(warn * 3600), 0, static_cast<std::uint64_t>(park * 3600),
            static_cast<std::uint64_t>(stop * 3600)};
  }

  std::vector<core::Event> events_;
  std::uint64_t last_ = 0;
};

TEST_F(IdleReportTest, WhatIsEndedIsFreeUntilItsRealEnd) {
  const JobId id = runs(0, 8);
  idle(id, 1);
  works(4, id);
  idle(id, 5);  // the policy would have ended it before
  works(7, id);
  ends(9, id);
  const IdleReport told = report(hours(1, 0, 2));
  ASSERT_EQ(told.spans.size(), 1u);
  EXPECT_EQ(told.spans[0].warned, at(2));
  EXPECT_EQ(told.spans[0].stopped, at(3));
  EXPECT_EQ(told.freed_mib_s, 8 * 6 * kGibHour) << "from 3 to 9";
  EXPECT_EQ(told.idle_mib_s, 8 * 3 * kGibHour);
}

TEST_F(IdleReportTest, WhatIsParkedIsFreeUntilItWakes) {
  const JobId id = runs(0, 8, true);
  idle(id, 1);
  works(4, id);
  idle(id, 5);
  const IdleReport told = report(hours(0, 1, 2));
  ASSERT_EQ(told.spans.size(), 2u);
  EXPECT_EQ(told.spans[0].parked, at(2));
  EXPECT_EQ(told.spans[0].stopped, std::nullopt);
  EXPECT_EQ(told.spans[1].until, at(10)) << "still";
  EXPECT_EQ(told.freed_mib_s, 8 * (2 + 4) * kGibHour);
}

TEST_F(IdleReportTest, WhatCannotBeParkedIsNot) {
  const JobId plain = runs(0, 8);
  const JobId managed = runs(0, 8, true);
  const JobId later = runs(0, 8, true);
  const JobId again = runs(0, 8, true);
  using core::JobState;
  happens(0.1, core::JobUnparked{managed, JobState::kRunning, "it has managed memory", true});
  happens(0.1, core::JobUnparked{again, JobState::kRunning, "it has managed memory", true});
  happens(0.2, core::JobUnparked{again, JobState::kRunning, "", false});  // the obstacle is gone
  for (const JobId id : {plain, managed, later, again}) idle(id, 1);
  happens(3, core::JobUnparked{later, JobState::kRunning, "too large", true});
  const IdleReport told = report(hours(0, 1, 5));
  ASSERT_EQ(told.spans.size(), 4u);
  EXPECT_EQ(told.spans[0].parked, std::nullopt);
  EXPECT_EQ(told.spans[0].unparkable, "it was not started to be parkable");
  EXPECT_EQ(told.spans[1].parked, std::nullopt);
  EXPECT_EQ(told.spans[1].unparkable, "it has managed memory");
  EXPECT_EQ(told.spans[1].stopped, at(6)) << "as one that is not parked";
  EXPECT_EQ(told.spans[2].parked, at(2)) << "nothing stood in the way then";
  EXPECT_EQ(told.spans[3].parked, at(2));
  EXPECT_EQ(told.freed_mib_s, 8 * (4 + 4 + 8 + 8) * kGibHour);
  EXPECT_NE(idle_text(told, {}).find("cannot"), std::string::npos);
  EXPECT_NE(idle_json(told).find(R"("unparkable":"it has managed memory")"), std::string::npos);
}

TEST_F(IdleReportTest, AShortPauseIsLeftAlone) {
  const JobId id = runs(0, 8);
  idle(id, 1);
  works(1.5, id);
  const IdleReport told = report(hours(1, 1, 1));
  ASSERT_EQ(told.spans.size(), 1u);
  EXPECT_EQ(told.spans[0].warned, std::nullopt);
  EXPECT_EQ(told.freed_mib_s, 0u);
}

TEST_F(IdleReportTest, WhatWasCutOffEndsWhereItWasLastKnown) {
  const JobId id = runs(0, 8);
  idle(id, 1);
  idle(id, 6);  // another daemon looks anew
  ends(7, id);
  const IdleReport told = report(hours(0, 0, 0.5));
  ASSERT_EQ(told.spans.size(), 2u);
  EXPECT_EQ(told.spans[0].until, at(1.02));
  EXPECT_EQ(told.spans[0].stopped, std::nullopt);
  EXPECT_EQ(told.spans[1].stopped, at(6.5));
}

TEST_F(IdleReportTest, OnlyWhatWasLately) {
  const JobId id = runs(0, 8);
  idle(id, 1);
  works(2, id);
  idle(id, 4);
  works(6, id);
  const IdleReport told = report(hours(1, 0, 0), 5);
  ASSERT_EQ(told.spans.size(), 1u);
  EXPECT_EQ(told.spans[0].since, at(4));
}

TEST_F(IdleReportTest, SaysWhatItFound) {
  EXPECT_NE(idle_text(report(hours(1, 1, 1)), {}).find("no job was idle"), std::string::npos);
  const JobId id = runs(0, 8);
  idle(id, 1);
  works(4, id);
  const std::string text = idle_text(report(hours(0, 0, 1)), {});
  EXPECT_NE(text.find("24.0 GiB-hours were held idle; this policy would have freed 64.0"),
            std::string::npos)
      << text;
  EXPECT_EQ(idle_json(report(hours(0, 0, 1))).find("warned_at"), std::string::npos);
}

}  // namespace
}  // namespace mete::cli
