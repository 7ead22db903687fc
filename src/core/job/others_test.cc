// SPDX-License-Identifier: Apache-2.0
#include "core/job/others.h"

#include <gtest/gtest.h>

namespace mete::core {
namespace {

Job secretive() {
  JobSpec spec;
  spec.name = "secret";
  spec.uid = 1000;
  spec.user = "alice";
  spec.request.gpu = *parse_gpu("40%");
  spec.request.where = *Query::parse("attribute:gpu.free >= 16G");
  spec.command = {"secret", "secret"};
  spec.folder = "/secret";
  spec.labels = {{"secret", "secret"}};
  spec.key = "secret";
  spec.time_s = 60;
  Job job;
  job.id = {12, 3};
  job.spec = spec;
  job.state = JobState::kRunning;
  job.attempt = 2;
  job.priority = -5;
  job.submitted = {1'000};
  job.started = WallTime{2'000};
  job.grant = {{1, "GPU-1", Bytes::from_gib(8), false, Bytes::from_gib(4), Bytes::from_gib(9)}};
  job.exit.emplace().note = "secret";
  job.put_off = PutOff{"secret", 1};
  job.park.emplace().why = "secret";
  job.stopped = "secret";
  return job;
}

TEST(Others, ARowHasWhatIsListedAndNothingElse) {
  SharedSpec last;
  JobSpec spec;
  spec.uid = 1000;
  spec.user = "alice";
  spec.request.gpu = *parse_gpu("40%");
  Job expected;
  expected.id = {12, 3};
  expected.spec = spec;
  expected.state = JobState::kRunning;
  expected.priority = -5;
  expected.submitted = {1'000};
  expected.started = WallTime{2'000};
  expected.grant = {{1, "GPU-1", Bytes::from_gib(8)}};
  EXPECT_EQ(row_of(secretive(), Others::kRows, last), expected);
}

TEST(Others, AllAddsNameAndCommandOnly) {
  SharedSpec last;
  const Job row = row_of(secretive(), Others::kAll, last);
  EXPECT_EQ(row.spec->name, "secret");
  EXPECT_EQ(row.spec->command, (std::vector<std::string>{"secret", "secret"}));
  JobSpec without = *row.spec;
  without.name.clear();
  without.command.clear();
  last = SharedSpec();
  EXPECT_EQ(without, *row_of(secretive(), Others::kRows, last).spec);
}

TEST(Others, RowsWithEqualWordsShareASpec) {
  SharedSpec last;
  Job job = secretive();
  const Job first = row_of(job, Others::kRows, last);
  JobSpec other = *job.spec;
  other.name = "another";
  job.spec = other;
  EXPECT_EQ(&*row_of(job, Others::kRows, last).spec, &*first.spec) << "names are not shown";
  EXPECT_EQ(row_of(job, Others::kAll, last).spec->name, "another");
  job.gpu = *parse_gpu("60%");
  EXPECT_EQ(row_of(job, Others::kRows, last).spec->request.gpu, parse_gpu("60%").value());
  other.user = "bob";
  other.uid = 1001;
  job.spec = other;
  EXPECT_EQ(row_of(job, Others::kRows, last).spec->user, "bob");
}

TEST(Others, HaveNames) {
  for (const Others others : {Others::kTotals, Others::kRows, Others::kAll})
    EXPECT_EQ(parse_others(to_string(others)), others);
  EXPECT_EQ(parse_others("none"), std::nullopt);
}

}  // namespace
}  // namespace mete::core
