// SPDX-License-Identifier: Apache-2.0
#include "wire/state.h"

#include <gtest/gtest.h>

#include <memory>

#include "wire/test/full.h"

namespace mete::wire {
namespace {

using core::JobId;
using core::State;

State::Parts full_parts() {
  State::Parts parts;
  parts.last_seq = 99;
  parts.last_job = 12;
  parts.last_reservation = UINT64_MAX;
  parts.boot_id = "5f3c";
  core::Job second = full_job();
  second.id.element = 4;
  parts.jobs = {full_job(), plain_job(), second};
  parts.jobs[2].spec = parts.jobs[0].spec;
  parts.lost = {"GPU-0", "GPU-3"};
  parts.drained = {{"GPU-1", "root"}, {"GPU-2", kOddText}};
  parts.quotas = {{"", full_quota()}, {"alice", {}}};
  parts.reservations = {full_reservation()};
  parts.arrays = {{12, 3}};
  parts.usage = {{"alice", UINT64_MAX, {77}}, {kOddBytes, 0, {0}}};
  parts.estimates = {{std::string("alice\0train", 11), {1, 4294967295}}, {"bob", {}}};
  parts.score = {10, 8, 1250};
  parts.last_sweep = UINT64_MAX;
  parts.sweeps = {full_sweep(2), full_sweep(UINT64_MAX)};
  return parts;
}

TEST(Parts, ReadBack) {
  const State::Parts parts = full_parts();
  const Result<State::Parts> again = decode_parts(encode(parts));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(*again, parts);
  EXPECT_EQ(*decode_parts(encode(State::Parts{})), State::Parts{});
}

TEST(Parts, JobsOfAnArrayNameOneSpec) {
  const std::string text = encode(full_parts());
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2 + 3 + 2) << text;
  const Result<State::Parts> again = decode_parts(text);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(&*again->jobs[0].spec, &*again->jobs[2].spec);
}

TEST(Parts, AJobWithoutAUserNameKeepsItsOwner) {
  State::Parts parts = full_parts();
  core::JobSpec spec = full_spec();
  spec.user = "";
  parts.jobs[0].spec = spec;
  EXPECT_EQ(decode_parts(encode(parts))->jobs[0].spec->uid, 4294967294u);
}

TEST(Parts, SweepsNeedNoJobs) {
  State::Parts parts;
  parts.last_sweep = 7;
  EXPECT_EQ(*decode_parts(encode(parts)), parts) << "all were removed";
  parts.sweeps = {full_sweep(7)};
  EXPECT_EQ(*decode_parts(encode(parts)), parts);
}

// As it is right after the start, with nothing optional in the plan.
TEST(Parts, ASweepWithoutTrialsReadsBack) {
  core::sweep::Plan plan;
  plan.name = "grid";
  plan.space = *core::sweep::Space::make({{"lr", std::vector{core::sweep::guess("0.1")}}});
  plan.job = *plain_job().spec;
  State::Parts parts;
  parts.last_sweep = 1;
  core::sweep::Sweep::Parts& sweep = parts.sweeps.emplace_back();
  sweep.number = 1;
  sweep.plan = std::make_shared<const core::sweep::Plan>(std::move(plan));
  EXPECT_EQ(*decode_parts(encode(parts)), parts);
}

// Results at rungs decide about later trials, so a restart must find all of them.
TEST(Parts, TheRungsOfASweepGoOnWhereTheyWere) {
  using Verdict = core::sweep::Halving::Verdict;
  core::sweep::Halving before = full_sweep(1).halving;
  State::Parts parts;
  parts.last_sweep = 1;
  parts.sweeps = {full_sweep(1)};
  core::sweep::Halving after = decode_parts(encode(parts))->sweeps[0].halving;
  ASSERT_EQ(after.recorded(), before.recorded());
  ASSERT_EQ(after.recorded().at(1).size(), 3u);
  for (core::sweep::Halving* halving : {&before, &after}) {
    const Verdict verdict = halving->report(5, 3, 0.5);
    EXPECT_EQ(verdict.kind, Verdict::Kind::kStop);
    EXPECT_EQ(verdict.rung, 1u);
    EXPECT_EQ(verdict.place, 3u) << "behind -1e300 and 0.1, before infinity";
    EXPECT_EQ(verdict.results, 4u);
  }
}

// The earliest format: tests/data/store/v1.db has one.
TEST(Parts, OneOfTheFirstDaysIsRead) {
  const Result<State::Parts> parts = decode_parts(R"({"jobs":[{"id":"1"},{"id":"7"}]})", 3);
  ASSERT_TRUE(parts.ok()) << parts.error().message;
  EXPECT_EQ(parts->last_seq, 3u);
  EXPECT_EQ(parts->last_job, 7u);
  ASSERT_EQ(parts->jobs.size(), 2u);
  EXPECT_EQ(parts->jobs[1].id, JobId{7});
  EXPECT_EQ(parts->jobs[0].state, core::JobState::kStopping);
  EXPECT_EQ(parts->jobs[0].outcome, core::Outcome::kLost);
  EXPECT_FALSE(decode_parts(R"({"jobs":[{"id":"x"}]})", 3).ok());
}

// As the version before the queue wrote it.
TEST(Parts, TheFirstVersionIsRead) {
  const Result<State::Parts> parts = decode_parts(
      R"({"schema":"mete.state/1","last_seq":99,"last_job":12,"jobs":[{"id":"12","spec":)"
      R"({"name":"train","command":["python"],"cwd":"/","uid":1000,"user":"alice","request":)"
      R"({"gpu":"8G"}},"state":"ended","attempt":1,"submitted_at":"2026-11-15T05:50:43.123Z",)"
      R"("grant":[{"card":"GPU-3","index":3,"bytes":8589934592}],"outcome":"ok",)"
      R"("exit":{"exit_code":0}}],"lost":["GPU-0"]})");
  ASSERT_TRUE(parts.ok()) << parts.error().message;
  EXPECT_EQ(parts->last_seq, 99u);
  EXPECT_EQ(parts->lost, std::vector<std::string>{"GPU-0"});
  ASSERT_EQ(parts->jobs.size(), 1u);
  EXPECT_EQ(parts->jobs[0].id, JobId{12});
  EXPECT_EQ(parts->jobs[0].spec->name, "train");
  EXPECT_EQ(parts->jobs[0].exit->code, 0);
  EXPECT_EQ(parts->jobs[0].priority, 0);
  EXPECT_EQ(parts->score, core::ForecastScore{});
}

TEST(Parts, WhatCannotBeIsRefused) {
  State::Parts twice = full_parts();
  twice.jobs.push_back(twice.jobs.front());
  EXPECT_EQ(decode_parts(encode(twice)).error().code, ErrorCode::kCorrupt);
  State::Parts ahead = full_parts();
  ahead.last_job = 11;
  EXPECT_EQ(decode_parts(encode(ahead)).error().code, ErrorCode::kCorrupt);
  State::Parts why = full_parts();
  why.jobs[0].outcome.reset();
  EXPECT_FALSE(decode_parts(encode(why)).ok()) << "it is being ended, and nobody knows why";
  State::Parts reserved = full_parts();
  reserved.last_reservation = 1;
  EXPECT_FALSE(decode_parts(encode(reserved)).ok());
  State::Parts without = full_parts();
  without.sweeps.clear();
  const std::string good = encode(without);
  EXPECT_FALSE(decode_parts(good.substr(0, good.rfind('\n'))).ok()) << "a job is missing";
  EXPECT_FALSE(decode_parts(good + "\n" + good.substr(good.rfind('\n') + 1)).ok());
  for (const auto& [what, with] : std::vector<std::pair<std::string, std::string>>{
           {"\"spec\":1", "\"spec\":2"},
           {"\"spec\":1", "\"spec\":-1"},
           {"\"specs\":2", "\"specs\":1"},
           {"\"drained\":[", "\"drained\":[7,"},
           {"\"quotas\":[", "\"quotas\":[{},"},
           {"\"arrays\":[", "\"arrays\":[{\"number\":1},"},
           {"\"durations_s\":[1", "\"durations_s\":[-1"},
           {"\"durations_s\":[1", "\"durations_s\":[4294967296"},
           {"\"factor_milli\":1250", "\"factor_milli\":\"\""},
           {"\"unmet\":[", "\"unmet\":[{},"},
           {"\"number\":2", "\"number\":-2"},
           {"\"forecast\":{\"made\"", "\"forecast\":{\"maid\""}})
    EXPECT_FALSE(decode_parts(replaced(good, what, with)).ok()) << with;
  for (const char* text : {"", "\n", "{}", "[]", "{\"last_seq\":1,\"last_job\":1}"})
    EXPECT_FALSE(decode_parts(text).ok()) << text;
}

TEST(Parts, ASweepThatCannotBeIsRefused) {
  State::Parts ahead = full_parts();
  ahead.last_sweep = 6;
  EXPECT_EQ(decode_parts(encode(ahead)).error().code, ErrorCode::kCorrupt);
  State::Parts twice = full_parts();
  twice.sweeps[0].number = twice.sweeps[1].number = 3;
  EXPECT_EQ(decode_parts(encode(twice)).error().code, ErrorCode::kCorrupt);

  State::Parts one;
  one.last_sweep = 2;
  one.sweeps = {full_sweep(2)};
  const std::string good = encode(one);
  ASSERT_TRUE(decode_parts(good).ok());
  EXPECT_FALSE(decode_parts(good.substr(0, good.rfind('\n'))).ok()) << "the sweep is missing";
  EXPECT_FALSE(decode_parts(good + "\n" + good.substr(good.rfind('\n') + 1)).ok());
  for (const auto& [what, with] : std::vector<std::pair<std::string, std::string>>{
           {"\"sweeps\":1", "\"sweeps\":2"},
           {"\"last_sweep\":2", "\"last_sweep\":1"},
           {"\"plan\":{", "\"plan\":[],\"x\":{"},
           {"\"job\":{\"name\"", "\"jab\":{\"name\""},
           {"\"number\":2", "\"number\":-2"},
           {"\"state\":\"paused\"", "\"state\":\"asleep\""},
           {"\"sampler\":\"tpe\"", "\"sampler\":\"dice\""},
           {"\"min\":1e-05", "\"min\":0.1"},
           {"\"when\":\"opt == ", "\"when\":\"optimizer == "},
           {"\"keep\":\"batch-size <=", "\"keep\":\"batch-size <<"},
           {"\"target\":\"acc >", "\"target\":\"acc > >"},
           {"\"asha\":\"metric=val_loss,min=1", "\"asha\":\"metric=val_loss,min=0"},
           {"\"reduce\":\"method=kendall", "\"reduce\":\"method=guess"},
           {"\"kind\":\"real\"", "\"kind\":\"complex\""},
           {"\"n\":1,\"point\"", "\"n\":2,\"point\""},
           {"\"n\":5,\"point\"", "\"n\":6,\"point\""},
           {"\"point\":[", "\"point\":[{},"},
           {"\"point\":[", "\"point\":[7,"},
           {"\"state\":\"stopped\"", "\"state\":\"parked\""},
           {"\"dropped\":[{\"parameter\":1", "\"dropped\":[{\"parameter\":5"},
           {"\"ends\":[{\"n\":2", "\"ends\":[{\"n\":6"},
           {"\"ends\":[{\"n\":2", "\"ends\":[{\"n\":0"},
           {"\"outcome\":\"lost\"", "\"outcome\":\"won\""},
           {"\"ending\":\"finished\"", "\"ending\":\"soon\""},
           {"\"rungs\":[{\"step\":1", "\"rungs\":[{\"step\":-1"},
           {"\"trial\":3", "\"trial\":null"},
           {"\"best\":{\"n\":3", "\"best\":{\"n\":null"}})
    EXPECT_FALSE(decode_parts(replaced(good, what, with)).ok()) << with;
}

}  // namespace
}  // namespace mete::wire
