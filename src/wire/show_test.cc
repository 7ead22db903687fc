// SPDX-License-Identifier: Apache-2.0
#include "wire/show.h"

#include <gtest/gtest.h>

#include "wire/test/full.h"

namespace mete::wire {
namespace {

ShowDocument full_document() {
  ShowDocument document;
  document.at = {1'800'000'009'000};
  document.view = full_view();
  document.view.job.exit->peaks = {Bytes::from_gib(3), kMost};  // one per card
  document.log = "/home/alice/12_3.log";
  document.err = "/dev/null";
  document.environment = {"HOME", "PATH"};
  document.elements = {{"pending", 3}, {"running", 1}};
  document.processes = {{412, Bytes::from_gib(3)}, {413, std::nullopt}};
  document.advice = {"12G", kOddText};
  document.notes = {"one", kOddText};
  return document;
}

TEST(Show, ReadsBack) {
  const ShowDocument document = full_document();
  const std::string text = encode(document);
  const Result<ShowDocument> again = decode_show(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  const core::Job& job = again->view.job;
  const core::JobSpec& asked = *document.view.job.spec;
  EXPECT_EQ(again->at, document.at);
  EXPECT_EQ(again->log, document.log);
  EXPECT_EQ(again->err, document.err);
  EXPECT_EQ(again->environment, document.environment);
  EXPECT_EQ(again->elements, document.elements);
  EXPECT_EQ(again->processes, document.processes);
  EXPECT_EQ(again->advice, document.advice);
  EXPECT_EQ(again->notes, document.notes);
  EXPECT_EQ(job.spec->array, asked.array);
  EXPECT_EQ(job.spec->after, asked.after);
  EXPECT_EQ(job.spec->time_s, asked.time_s);
  EXPECT_EQ(job.spec->retries, asked.retries);
  EXPECT_EQ(job.spec->retry_gpu_pct, asked.retry_gpu_pct);
  EXPECT_EQ(job.spec->requeue, asked.requeue);
  EXPECT_EQ(job.spec->begin, asked.begin);
  EXPECT_EQ(job.spec->deadline, asked.deadline);
  EXPECT_TRUE(job.spec->detached->tty);
  core::Request request = asked.request;
  request.gpu = document.view.job.gpu;
  EXPECT_EQ(job.spec->request, request);
  EXPECT_EQ(job.unmet, document.view.job.unmet);
  EXPECT_EQ(job.held, document.view.job.held);
  EXPECT_EQ(job.not_before, document.view.job.not_before);
  ASSERT_EQ(job.attempts.size(), 2u) << "that of now is not one before it";
  EXPECT_EQ(job.attempts[0], document.view.job.attempts[0]);
  EXPECT_EQ(job.attempts[1].number, 2u);
  EXPECT_EQ(job.attempts[1].started, document.view.job.attempts[1].started);
  EXPECT_EQ(job.attempts[1].exit->signal, 9);
  EXPECT_EQ(job.attempts[1].exit->peaks, std::vector{kMost}) << "the most on any card";
  EXPECT_EQ(job.exit->ran_ms, full_exit().ran_ms);
  EXPECT_EQ(encode(*again), text) << "nothing was lost on the way";
}

TEST(Show, HidesValuesAndWhatIsTheDaemons) {
  const std::string text = encode(full_document());
  for (const char* secret : {"aaaa", "bbbb", "groups", "4294967293", "umask"})
    EXPECT_EQ(text.find(secret), std::string::npos) << secret;
  const std::string blob("B=secret\0A=x=y\0PLAIN\0=odd\0", 26);
  EXPECT_EQ(environment_names(blob), (std::vector<std::string>{"", "A", "B", "PLAIN"}));
  EXPECT_EQ(environment_names("CUT=off"), std::vector<std::string>{"CUT"});
  EXPECT_TRUE(environment_names("").empty());
}

TEST(Show, ListsAreThereAlsoWhenEmpty) {
  ShowDocument document;
  document.view.job = plain_job();
  const std::string text = encode(document);
  for (const char* list : {"\"after\":[]", "\"environment\":[]", "\"attempts\":[]", "\"notes\":[]",
                           "\"processes\":[]", "\"limits\":{}"})
    EXPECT_NE(text.find(list), std::string::npos) << list;
  for (const char* absent : {"array", "log", "advice", "detached", "held", "null"})
    EXPECT_EQ(text.find("\"" + std::string(absent)), std::string::npos) << absent;
  const Result<ShowDocument> again = decode_show(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_FALSE(again->view.job.spec->detached);
  EXPECT_FALSE(again->view.job.spec->array);
}

TEST(Show, WrongKindsAreRefused) {
  const std::string good = encode(full_document());
  for (const auto& [what, with] : std::vector<std::pair<std::string, std::string>>{
           {"\"cwd\":", "\"cwd\":7,\"x\":"},
           {"\"limits\":{", "\"limits\":7,\"x\":{"},
           {"\"elements\":\"0-9", "\"elements\":\"9-0"},
           {"\"states\":{", "\"states\":{\"x\":-1,"},
           {"\"n\":2", "\"n\":-2"},
           {"\"outcome\":\"lost\"", "\"outcome\":\"found\""},
           {"\"pid\":412", "\"pid\":4294967296"},
           {"\"processes\":[", "\"processes\":[7,"},
           {"\"advice\":{", "\"advice\":{\"gpu\":7},\"x\":{"},
           {"\"notes\":[", "\"notes\":[7,"},
           {"\"ran_s\":4294967295", "\"ran_s\":4294967296"},
           {"\"when\":\"any\"", "\"when\":7"}})
    EXPECT_FALSE(decode_show(replaced(good, what, with)).ok()) << with;
  for (const char* text : {"", "{}", "[]", R"({"job":7})"})
    EXPECT_FALSE(decode_show(text).ok()) << text;
}

}  // namespace
}  // namespace mete::wire
