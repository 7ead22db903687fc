// SPDX-License-Identifier: Apache-2.0
// Forecasts of small queues. Tests let jobs run first, so that their lengths are learned, then
// compare the forecast of a waiting job with the start that this history implies. Then the score
// that corrects forecasts, which grows and shrinks as jobs start late or in time.
#include "core/explain/forecast.h"

#include <gtest/gtest.h>

#include "core/test/state_world.h"

namespace mete::core {
namespace {

class ForecastTest : public StateWorld {
 protected:
  std::optional<Forecast> told(JobId id) {
    const Sight sight = state_.look(moment());
    return forecast(state_, sight, id);
  }
  std::int64_t at(JobId id) { return (told(id)->at.ms - now_.ms) / 1000; }
  std::int64_t by(JobId id) { return (told(id)->by.ms - now_.ms) / 1000; }

  static JobSpec named(const std::string& name, const std::string& gpu, const std::string& user) {
    JobSpec spec = spec_of(gpu, user);
    spec.name = name;
    return spec;
  }
  static JobSpec timed(const std::string& gpu, std::uint64_t seconds,
                       const std::string& user = "alice") {
    JobSpec spec = spec_of(gpu, user);
    spec.time_s = seconds;
    return spec;
  }
  void have_run(int count, const JobSpec& spec, std::int64_t seconds) {
    for (int i = 0; i < count; ++i) {
      const JobId id = run(spec);
      later(seconds);
      ended(id);
    }
  }
  void tell(JobId id) { EXPECT_TRUE(take(Foretold{id, *told(id)}).ok()); }
};

TEST_F(ForecastTest, FollowsFromHowLongSuchJobsRan) {
  have_run(30, named("train", "80G", "alice"), 1000);
  run(named("train", "80G", "alice"));
  later(400);
  const JobId waits = submit("80G", "bob");
  EXPECT_EQ(at(waits), 600);
}

TEST_F(ForecastTest, AddsUpTheJobsAhead) {
  run(timed("80G", 600));
  submit(timed("80G", 1200));
  const JobId waits = submit("80G");
  EXPECT_EQ(at(waits), 1800);
}

TEST_F(ForecastTest, KnowsThatAShortJobMayGoBetween) {
  run(timed("60G", 3600));
  submit(timed("80G", 3600));
  const JobId small = submit(timed("10G", 600));
  EXPECT_EQ(grant(), Ids{small});
}

TEST_F(ForecastTest, IsTheSameForTheSame) {
  have_run(14, named("train", "80G", "alice"), 1000);
  have_run(6, named("train", "80G", "alice"), 3000);
  run(named("train", "80G", "alice"));
  const JobId waits = submit("80G", "bob");
  EXPECT_EQ(told(waits), told(waits));
  EXPECT_LT(at(waits), by(waits));
}

TEST_F(ForecastTest, AJobThatIsLateMayTakeAsLongAgain) {
  have_run(30, named("train", "80G", "alice"), 1000);
  run(named("train", "80G", "alice"));
  later(5000);
  const JobId waits = submit("80G", "bob");
  EXPECT_GT(by(waits), at(waits));
  EXPECT_GT(at(waits), 2000);
  EXPECT_LT(at(waits), 12'000);
}

TEST_F(ForecastTest, ShortJobsOfOtherNamesSayNothing) {
  have_run(20, named("short", "80G", "alice"), 1);
  have_run(20, named("train", "80G", "bob"), 1);
  run(named("train", "80G", "alice"));
  const JobId waits = submit("80G", "bob");
  EXPECT_FALSE(told(waits)) << "nothing is known of how long it runs";
}

// Both jobs are named after their program.
TEST_F(ForecastTest, ShortJobsOfTheSameProgramWithOtherWordsSayNothing) {
  JobSpec short_one = named("sleep", "80G", "alice");
  short_one.command = {"sleep", "1"};
  have_run(20, short_one, 1);
  JobSpec long_one = short_one;
  long_one.command = {"sleep", "900"};
  run(long_one);
  EXPECT_FALSE(told(submit("80G", "bob")));
}

TEST_F(ForecastTest, IsNeverInThePastHoweverLateTheHolderIs) {
  have_run(30, named("train", "80G", "alice"), 2);
  run(named("train", "80G", "alice"));
  const JobId waits = submit("80G", "bob");
  for (const std::int64_t seconds : {1, 1, 1, 10, 100, 1000, 10'000}) {
    later(seconds);
    ASSERT_TRUE(told(waits));
    EXPECT_GT(at(waits), 0) << "after " << seconds;
    EXPECT_GE(by(waits), at(waits));
  }
}

TEST_F(ForecastTest, AHolderWhoseTimeIsOverEndsWithinTheGrace) {
  run(timed("80G", 600));
  const JobId waits = submit("80G", "bob");
  later(605);
  EXPECT_GT(at(waits), 0);
  EXPECT_LE(at(waits), 31);
}

TEST_F(ForecastTest, OnePassTellsTheSameOfAllJobs) {
  run(timed("80G", 600));
  JobSpec later_on = timed("10G", 60);
  later_on.begin = WallTime{now_.ms + 7'200'000};
  const Ids waiting{submit(timed("80G", 100)), submit(timed("80G", 100)), submit(timed("80G", 100)),
                    submit(later_on)};
  JobSpec held = timed("10G", 60);
  held.held = true;
  submit(held);
  const Sight sight = state_.look(moment());
  Forecaster all(state_, sight);
  std::size_t steps = 1;
  while (!all.go_on(500)) ++steps;  // a few passes at a time
  EXPECT_GT(steps, 10u);
  EXPECT_EQ(all.told().size(), waiting.size());
  for (const JobId id : waiting) {
    ASSERT_TRUE(all.told().contains(id)) << to_string(id);
    EXPECT_EQ(all.told().at(id), *told(id)) << to_string(id);
  }
}

TEST_F(ForecastTest, APassIsNotDisturbedByWhatChangesMeanwhile) {
  const JobId first = run(timed("80G", 600));
  const JobId waits = submit(timed("80G", 100));
  submit(timed("80G", 100));
  const Forecast before = *told(waits);
  Forecaster all(state_, state_.look(moment()));
  EXPECT_FALSE(all.go_on(500));
  ended(first);
  EXPECT_EQ(grant(), Ids{waits});
  started(waits);
  ended(waits);
  EXPECT_TRUE(all.go_on(all.most_work()));
  EXPECT_EQ(all.told().at(waits), before);
}

TEST_F(ForecastTest, AParkedJobDoesNotEnd) {
  JobSpec spec = timed("60G", 600);
  spec.preemptible = true;
  const JobId parked = run(spec);
  EXPECT_TRUE(take(ParkJob{parked, caller("root"), false}).ok());
  EXPECT_TRUE(
      take(
          ParkReport{
              parked, job(parked).spec->uid, true, {Bytes::from_gib(30)}, {}, "", false, false, {}})
          .ok());
  EXPECT_EQ(state_of(parked), JobState::kParked);
  EXPECT_FALSE(told(submit("60G", "bob"))) << "until somebody asks for it back";
}

TEST_F(ForecastTest, AJobThatIsBeingParkedMakesRoomSoon) {
  JobSpec spec = spec_of("60G");
  spec.preemptible = true;
  const JobId parked = run(spec);
  const JobId waits = submit("60G", "bob");
  EXPECT_FALSE(told(waits));
  EXPECT_TRUE(take(ParkJob{parked, caller("root"), false}).ok());
  ASSERT_TRUE(told(waits));
  EXPECT_LT(at(waits), 60);
}

TEST_F(ForecastTest, IsAbsentForJobsThatDoNotStandInLine) {
  run(timed("80G", 600));
  JobSpec spec = timed("10G", 60);
  spec.held = true;
  EXPECT_FALSE(told(submit(spec)));
  spec.held = false;
  spec.after = {{{1}, When::kAny}};
  EXPECT_FALSE(told(submit(spec)));
}

TEST_F(ForecastTest, IsAbsentFarBackInLine) {
  run(timed("80G", 600));
  JobId last;
  for (std::size_t i = 0; i < kForecastJobs; ++i) last = submit(timed("80G", 60));
  const JobId behind = submit(timed("80G", 60));
  Forecaster all(state_, state_.look(moment()));
  EXPECT_TRUE(all.go_on(all.most_work()));
  EXPECT_TRUE(all.told().contains(last));
  EXPECT_FALSE(all.told().contains(behind));
}

TEST_F(ForecastTest, IsNotBeforeTheTimeThatTheJobWaitsFor) {
  JobSpec spec = timed("10G", 60);
  spec.begin = WallTime{now_.ms + 900'000};
  EXPECT_EQ(at(submit(spec)), 900);
}

TEST_F(ForecastTest, IsNotWithinAReservationOfSomebodyElse) {
  EXPECT_TRUE(
      take(Reserve{"carol", spec_of("1").request, {now_.ms}, {now_.ms + 5'000'000}, caller("root")})
          .ok());
  EXPECT_EQ(at(submit(timed("10G", 60))), 5000);
}

// Bob's jobs come every five minutes. He has less usage than alice and goes first each time, and
// she needs all cards.
TEST_F(ForecastTest, ReckonsWithThoseWhoWillCome) {
  machine_ = pool_of({80, 80, 80, 80});
  have_run(1, named("long", "4", "alice"), 5'000);
  for (int i = 0; i < 50; ++i) {
    have_run(1, named("short", "80G", "bob"), 290);
    later(10);
  }
  run(timed("4", 600, "carol"));
  const JobId waits = submit(named("long", "4", "alice"));
  EXPECT_GE(by(waits), 600 + 290);
}

TEST_F(ForecastTest, ABurstOfOneSubmitIsNotTakenToComeAgainAtOnce) {
  have_run(1, named("long", "80G", "alice"), 5'000);
  run(timed("80G", 600, "carol"));
  JobSpec many = named("short", "80G", "bob");
  many.array = *parse_array("0-499");
  many.priority = -1;
  submit(many);
  EXPECT_EQ(at(submit(named("long", "80G", "alice"))), 600);
}

TEST_F(ForecastTest, IsStretchedByWhatEarlierOnesWereWorth) {
  run(timed("80G", 600));
  const JobId waits = submit("10G", "bob");
  EXPECT_EQ(by(waits), 600);
  State::Parts parts = state_.parts();
  parts.score.factor_milli = 1500;
  state_ = State::from_parts(parts);
  EXPECT_EQ(by(waits), 900);
  EXPECT_EQ(at(waits), 600);
}

TEST_F(ForecastTest, OnlyWhatIsUncertainIsCorrected) {
  JobSpec later_on = timed("10G", 60);
  later_on.begin = WallTime{now_.ms + 7'200'000};
  const JobId begins = submit(later_on);
  EXPECT_TRUE(
      take(Reserve{"carol", spec_of("1").request, {now_.ms}, {now_.ms + 3'600'000}, caller("root")})
          .ok());
  const JobId reserved = submit(timed("10G", 60));
  State::Parts parts = state_.parts();
  for (const std::uint32_t factor : {250u, 20'000u}) {
    parts.score.factor_milli = factor;
    state_ = State::from_parts(parts);
    EXPECT_EQ(at(begins), 7200) << factor;
    EXPECT_EQ(by(begins), 7201) << factor;
    EXPECT_EQ(at(reserved), 3600) << factor;
    EXPECT_EQ(by(reserved), 3601) << factor;
  }
}

// ---- the score of forecasts --------------------------------------------------------------------

TEST_F(ForecastTest, OneThatHeldShrinksTheNextAndOneThatDidNotStretchesIt) {
  const JobId running = run(timed("80G", 600));
  const JobId waits = submit("10G", "bob");
  tell(waits);
  later(600);
  ended(running);
  EXPECT_EQ(grant(), Ids{waits});
  EXPECT_EQ(state_.score(), (ForecastScore{1, 1, 980}));
  started(waits);
  ended(waits);

  const JobId again = run(timed("80G", 600));
  const JobId late = submit("10G", "bob");
  tell(late);
  later(700);
  ended(again);
  EXPECT_EQ(grant(), Ids{late});
  EXPECT_EQ(state_.score(), (ForecastScore{2, 1, 1063}));
}

TEST_F(ForecastTest, EightyOfAHundredThatHoldLeaveItAsItIs) {
  const auto score_one = [this](bool held) {
    const JobId running = run(timed("80G", 600));
    const JobId waits = submit("10G", "bob");
    EXPECT_TRUE(take(Foretold{waits, {now_, now_, {now_.ms + (held ? 2000 : 500)}}}).ok());
    later(1);
    ended(running);
    EXPECT_EQ(grant(), Ids{waits});
    started(waits);
    ended(waits);
  };
  for (int i = 0; i < 100; ++i) score_one(i % 5 != 0);
  EXPECT_EQ(state_.score().held, 80u);
  EXPECT_NEAR(state_.score().factor_milli, 1000, 50);
}

TEST_F(ForecastTest, CountsOnceAlthoughNothingWasLaunched) {
  run(timed("80G", 600));
  const JobId waits = submit(timed("10G", 60, "bob"));
  tell(waits);
  EXPECT_TRUE(cancel({1}, "root").ok());
  EXPECT_TRUE(take(JobGone{{1}}).ok());
  EXPECT_EQ(grant(), Ids{waits});
  EXPECT_TRUE(take(NotLaunched{waits, ""}).ok());
  EXPECT_EQ(grant(), Ids{waits});
  EXPECT_EQ(state_.score().given, 1u);
}

TEST_F(ForecastTest, AJobThatWasHeldOrMovedMeanwhileIsNotCounted) {
  const JobId running = run(timed("80G", 600));
  const JobId held = submit("10G", "bob");
  const JobId moved = submit("10G", "bob");
  tell(held);
  tell(moved);
  EXPECT_TRUE(take(Hold{held, caller("bob")}).ok());
  EXPECT_TRUE(take(SetPriority{moved, caller("bob"), -5}).ok());
  later(600);
  EXPECT_TRUE(take(Release{held, caller("bob")}).ok());
  ended(running);
  EXPECT_EQ(grant(), (Ids{held, moved}));
  EXPECT_EQ(state_.score().given, 0u);
}

TEST_F(ForecastTest, WhoGivesUpAfterTheTimeThatWasToldCountsAsMissed) {
  run(timed("80G", 600));
  const JobId patient = submit("10G", "bob");
  const JobId hasty = submit("10G", "bob");
  tell(patient);
  tell(hasty);
  EXPECT_TRUE(cancel(hasty, "bob").ok());
  later(5000);
  EXPECT_TRUE(cancel(patient, "bob").ok());
  EXPECT_EQ(state_.score().given, 1u);
  EXPECT_EQ(state_.score().held, 0u);
}

}  // namespace
}  // namespace mete::core
