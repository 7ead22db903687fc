// SPDX-License-Identifier: Apache-2.0
#include "wire/state.h"

#include <gtest/gtest.h>

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
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2 + 3) << text;
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
  const std::string good = encode(full_parts());
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

}  // namespace
}  // namespace mete::wire
