// SPDX-License-Identifier: Apache-2.0
#include "wire/ps_lines.h"

#include <gtest/gtest.h>

#include "wire/test/full.h"

namespace mete::wire {
namespace {

const WallTime kAt{1'800'000'009'000};

TEST(PsLines, ReadBackWhatATableShows) {
  JobView view = full_view();
  view.place = 7;
  const std::string text = encode_ps_lines({view}, kAt);
  const Result<std::vector<JobView>> again = decode_ps_lines(text);
  ASSERT_TRUE(again.ok()) << text;
  ASSERT_EQ(again->size(), 1u);
  const core::Job& job = again->front().job;
  EXPECT_EQ(job.id, view.job.id);
  EXPECT_EQ(job.state, view.job.state);
  EXPECT_EQ(job.outcome, view.job.outcome);
  EXPECT_EQ(job.exit->code, view.job.exit->code);
  EXPECT_EQ(job.exit->signal, view.job.exit->signal);
  EXPECT_EQ(job.attempt, view.job.attempt);
  EXPECT_EQ(job.priority, view.job.priority);
  EXPECT_EQ(job.submitted, view.job.submitted);
  EXPECT_EQ(job.started, view.job.started);
  EXPECT_EQ(job.ended, view.job.ended);
  ASSERT_EQ(job.grant.size(), 2u);
  EXPECT_EQ(job.grant[0].index, 3u);
  EXPECT_EQ(job.grant[0].bytes, Bytes::from_gib(8));
  EXPECT_FALSE(job.grant[0].whole);
  EXPECT_EQ(job.grant[1].bytes, kMost);
  EXPECT_TRUE(job.grant[1].whole);
  EXPECT_EQ(again->front().used, view.used);
  EXPECT_EQ(again->front().forecast, view.forecast);
  EXPECT_EQ(again->front().idle_since, view.idle_since);
  EXPECT_EQ(again->front().wait, view.wait);
  EXPECT_EQ(again->front().place, view.place);
  EXPECT_EQ(job.spec->name, view.job.spec->name);
  EXPECT_EQ(job.spec->user, view.job.spec->user);
  EXPECT_EQ(job.spec->uid, view.job.spec->uid);
  EXPECT_EQ(job.spec->request.gpu, view.job.gpu);
  EXPECT_EQ(job.spec->command, std::vector{std::string("python  ") + kOddText + " " + kOddBytes});
  ASSERT_TRUE(job.park.has_value());
  EXPECT_EQ(job.park->cause, view.job.park->cause);
  EXPECT_EQ(job.park->for_job, view.job.park->for_job);
  EXPECT_EQ(job.park->moved, view.job.park->moved);
  EXPECT_EQ(job.park->on_disk, view.job.park->on_disk);
  EXPECT_EQ(job.park->held, std::vector{Bytes::from_mib(518)}) << "of all cards together";
  EXPECT_EQ(encode_ps_lines(*again, kAt), text);
}

TEST(PsLines, AreOneLineEach) {
  const std::string text = encode_ps_lines({full_view(), {plain_job()}}, kAt);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_EQ(text.substr(0, text.find('\n')), "mete.ps-lines/1\t1800000009000");
  EXPECT_EQ(text.substr(text.find("3\tpending")),
            "3\tpending\t\t\t\t\t1\t0\t\t0\t\t\t\t\t\t\tplain\t\t0\t\t\t\t\t\t\t\n");
}

TEST(PsLines, ALongCommandIsCut) {
  core::JobSpec spec;
  spec.name = "long";
  spec.command = {"python", std::string(247, 'x') + "\xc3\xa4\xc3\xa4", "more"};
  JobView view;
  view.job.id = {1};
  view.job.spec = spec;
  // 7 bytes of the first word, 249 for the second: its last letter is not cut in half.
  const std::string cut = "python " + std::string(247, 'x') + "\xc3\xa4…\t\t\t\t\t\n";
  EXPECT_TRUE(encode_ps_lines({view}, kAt).ends_with("\t" + cut));
  EXPECT_EQ(decode_ps(encode_ps({view}, kAt))->front().job.spec->command,
            (std::vector{spec.command[0], std::string(247, 'x') + "\xc3\xa4…"}));
  spec.command = {"python", std::string(246, 'x') + "\xc3\xa4\xc3\xa4"};
  view.job.spec = spec;
  EXPECT_EQ(decode_ps(encode_ps({view}, kAt))->front().job.spec->command[1],
            std::string(246, 'x') + "\xc3\xa4…")
      << "250 bytes do not fit, and 249 are a half";
  spec.command[1].resize(248);
  view.job.spec = spec;
  EXPECT_EQ(decode_ps(encode_ps({view}, kAt))->front().job.spec->command, spec.command);
}

TEST(PsLines, AnEmptyListIsAList) {
  EXPECT_TRUE(decode_ps_lines(encode_ps_lines({}, kAt))->empty());
  EXPECT_FALSE(decode_ps_lines("").ok());
}

TEST(PsLines, JobsOfAnArrayShareTheirSpec) {
  JobView first = full_view(), second = full_view(), other = full_view();
  second.job.id.element = 4;
  core::JobSpec spec = full_spec();
  spec.name = "other";
  other.job.spec = spec;
  const Result<std::vector<JobView>> again =
      decode_ps_lines(encode_ps_lines({first, second, other}, kAt));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(&*(*again)[0].job.spec, &*(*again)[1].job.spec);
  EXPECT_EQ((*again)[2].job.spec->name, "other");
}

TEST(PsLines, MoreColumnsAreANewerDaemons) {
  std::string text = encode_ps_lines({{plain_job()}}, kAt);
  text.insert(text.size() - 1, "\tnew");
  EXPECT_EQ(decode_ps_lines(text)->front().job.spec->name, "plain");
}

TEST(PsLines, WhatIsWrongIsRefused) {
  JobView view = full_view();
  view.wait.reset();  // the sentence is ignored where there is data
  const std::string good = encode_ps_lines({view}, kAt);
  for (const auto& [what, with] : std::vector<std::pair<std::string, std::string>>{
           {"mete.ps-lines/1", "mete.ps-lines/2"},
           {"mete.ps-lines/1\t", "mete.ps-lines/1"},
           {"12_3\t", "12_\t"},
           {"\tstopping\t", "\tdreaming\t"},
           {"\t3\t7\t", "\t3\tx\t"},
           {"\t3\t7\t", "\t-3\t7\t"},
           {"\t3\t7\t", "\t\t7\t"},
           {"3:8589934592:5368709120", "3:8589934592"},
           {"3:8589934592:5368709120", "x:8589934592:"},
           {"3:8589934592:5368709120", "3::5368709120"},
           {"1800000000123", "1800000000123x"},
           {"1800000000123", "99999999999999999999"},
           {"\\n", "\\q"},
           {"\talice\t", "\t"},
           {"\n12_3", "\n\n12_3"}})
    EXPECT_FALSE(decode_ps_lines(replaced(good, what, with)).ok()) << with;
  EXPECT_FALSE(decode_ps_lines(good.substr(0, good.size() - 1)).ok()) << "cut off";
}

}  // namespace
}  // namespace mete::wire
