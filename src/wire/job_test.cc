// SPDX-License-Identifier: Apache-2.0
// Requests, reports and answers of runs, and JOB: full values and plain ones must come back
// unchanged, wrong ones are refused by name, and names that only a newer daemon has are tolerated
// where possible. Values with no default field come from test/full.h.
#include "wire/job.h"

#include <gtest/gtest.h>

#include "core/request/gpu.h"
#include "wire/test/full.h"

namespace mete::wire {
namespace {

using core::Exit;
using core::Job;
using core::JobId;
using core::JobSpec;

// ---- requests and answers ----------------------------------------------------------------------

TEST(RunRequest, ReadsBack) {
  RunRequest request{full_spec(), 77, false};
  const Result<RunRequest> again = decode_run_request(encode(request));
  ASSERT_TRUE(again.ok()) << again.error().message;
  request.spec.uid = 0;  // the socket reports the user
  request.spec.user = "";
  EXPECT_EQ(again->spec, request.spec);
  EXPECT_EQ(again->runner_start_ticks, 77u);
  EXPECT_FALSE(again->wait);
}

// The canonical text is unchanged for all readers; the text as written is beside it.
TEST(RunRequest, KeepsHowTheShareWasWritten) {
  RunRequest request{full_spec(), 1, true};
  for (const auto& [written, canonical] :
       {std::pair("0.4", "40%"), {"8000MB", "8GB"}, {"grow", "1G..all"}, {"8GB", "8GB"}}) {
    request.spec.request.gpu = *core::parse_gpu(written);
    const std::string text = encode(request);
    EXPECT_NE(text.find("\"gpu\":\"" + std::string(canonical) + "\""), std::string::npos) << text;
    EXPECT_EQ(text.find("gpu_written") == std::string::npos,
              std::string_view(written) == canonical);
    EXPECT_EQ(as_written(*decode_run_request(text)->spec.request.gpu), written);
  }
  const std::string other =
      replaced(encode(request), "\"gpu\":\"8GB\"", "\"gpu\":\"8GB\",\"gpu_written\":\"80GB\"");
  EXPECT_EQ(as_written(*decode_run_request(other)->spec.request.gpu), "8GB")
      << "words that ask for something else are not believed";
  Job job = plain_job();
  JobSpec spec = *job.spec;
  spec.request.gpu = *core::parse_gpu("0.4");
  job.spec = spec;
  JobView view = full_view();
  view.job = job;
  EXPECT_EQ(as_written(*decode_ps(encode_ps({view}, {}))->at(0).job.spec->request.gpu), "0.4");
}

TEST(RunRequest, CannotSayWhoseItIs) {
  const std::string good = encode(RunRequest{full_spec(), 1, true});
  for (const char* field : {"\"uid\":0,", "\"user\":\"root\","})
    EXPECT_FALSE(
        decode_run_request(replaced(good, "\"name\":", field + std::string("\"name\":"))).ok())
        << field;
}

TEST(RunRequest, UnknownFieldsAreRefused) {
  const std::string good = encode(RunRequest{full_spec(), 1, true});
  for (const char* with : {"{\"new\":[1,{}],\"job\":{", "{\"job\":{\"new\":null,"}) {
    const Result<RunRequest> request = decode_run_request(replaced(good, "{\"job\":{", with));
    ASSERT_FALSE(request.ok()) << with;
    EXPECT_NE(request.error().message.find("unknown field 'new'"), std::string::npos);
  }
}

TEST(RunRequest, EveryWrongKindIsRefused) {
  const std::string good = encode(RunRequest{full_spec(), 1, false});
  for (const auto& [what, with] : std::vector<std::pair<std::string, std::string>>{
           {"\"name\":\"", "\"name\":5,\"x\":\""},
           {"\"command\":[", "\"command\":[1,"},
           {"\"cwd\":", "\"cwd\":{},\"x\":"},
           {"\"gpu\":\"2x40%\"", "\"gpu\":\"a lot\""},
           {"\"gpu\":\"2x40%\"", "\"gpu\":2"},
           {"\"procs\":4", "\"procs\":0"},
           {"\"procs\":4", "\"procs\":4294967297"},
           {"\"procs\":4", "\"procs\":-4"},
           {"\"cpus\":8", "\"cpus\":4294967296"},
           {"\"or_cpu\":true", "\"or_cpu\":1"},
           {"\"time_s\":3600", "\"time_s\":\"1h\""},
           {"\"no_wait\":true", "\"no_wait\":\"yes\""},
           {"\"runner_start_ticks\":1", "\"runner_start_ticks\":-1"},
           {"\"priority\":-1000", "\"priority\":-1001"},
           {"\"priority\":-1000", "\"priority\":1001"},
           {"\"when\":\"any\"", "\"when\":\"maybe\""},
           {"\"id\":\"9_0\"", "\"id\":\"9_\""},
           {"\"after\":[", "\"after\":[7,"},
           {"\"array\":\"0-9:3", "\"array\":\"9-0"},
           {"\"retries\":5", "\"retries\":1001"},
           {"\"retry_gpu_pct\":150", "\"retry_gpu_pct\":100"},
           {"\"begin\":\"", "\"begin\":\"tomorrow "},
           {"\"labels\":{", "\"labels\":{\"a\":1,"},
           {"\"labels\":{", "\"labels\":[],\"x\":{"},
           {"\"request\":{", "\"request\":[],\"x\":{"}}) {
    const Result<RunRequest> request = decode_run_request(replaced(good, what, with));
    ASSERT_FALSE(request.ok()) << with;
    EXPECT_EQ(request.error().code, ErrorCode::kInvalid) << with;
  }
}

TEST(RunRequest, ARunIsNotDetached) {
  EXPECT_FALSE(decode_run_request(encode(RunRequest{full_detached_spec(), 1, true})).ok());
}

TEST(RunRequest, AJobHasACommand) {
  RunRequest request{full_spec(), 1, true};
  request.spec.command.clear();
  EXPECT_FALSE(decode_run_request(encode(request)).ok());
  EXPECT_FALSE(decode_run_request("{}").ok());
  EXPECT_FALSE(decode_run_request("[]").ok());
  EXPECT_FALSE(decode_run_request("").ok());
}

TEST(RunRequest, WhatIsNotUtf8ArrivesByteForByte) {
  RunRequest request{full_spec(), 1, true};
  request.spec.command = {"cat", "caf\xe9"};
  const std::string text = encode(request);
  EXPECT_NE(text.find(R"({"hex":"636166e9"})"), std::string::npos) << text;
  const Result<RunRequest> again = decode_run_request(text);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->spec.command[1], "caf\xe9");
  for (const char* wrong : {R"({"hex":"636166e"})", R"({"hex":"636166E9"})", R"({"hex":5})",
                            R"({"hex":"","more":1})", R"({"hax":""})", "null"})
    EXPECT_FALSE(decode_run_request(replaced(text, R"({"hex":"636166e9"})", wrong)).ok()) << wrong;
}

TEST(RunReply, ReadsBack) {
  RunReply reply;
  reply.view.job = full_job();
  reply.view.wait = full_wait();
  reply.tag = "18446744073709551615";
  reply.seq = 18446744073709551615ull;
  reply.cards = {{0, "", "H200", Bytes::from_gib(140), Bytes::from_gib(141), "NVIDIA H200"}};
  reply.driver = "580.159.04";
  reply.readings = "/run/readings";
  reply.simulated = "4xH200";
  const std::string text = encode(reply);
  const Result<RunReply> again = decode_run_reply(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->tag, reply.tag);
  EXPECT_EQ(again->seq, reply.seq);
  EXPECT_EQ(again->view.wait, reply.view.wait);
  EXPECT_EQ(again->view.job.grant, reply.view.job.grant);
  ASSERT_EQ(again->cards.size(), 1u);
  EXPECT_EQ(again->cards[0].name, "NVIDIA H200");
  EXPECT_EQ(again->cards[0].type, "H200");
  EXPECT_EQ(again->cards[0].total, Bytes::from_gib(141));
  EXPECT_EQ(again->cards[0].capacity, Bytes::from_gib(140));
  EXPECT_EQ(again->driver, reply.driver);
  EXPECT_EQ(again->readings, reply.readings);
  EXPECT_EQ(again->simulated, reply.simulated);
  EXPECT_FALSE(decode_run_reply(replaced(text, "\"tag\":\"", "\"tag\":5,\"x\":\"")).ok());
}

TEST(Ps, ShowsWhatAUserMaySee) {
  const JobView view = full_view();
  const std::string text = encode_ps({view}, {0});
  const Result<std::vector<JobView>> again = decode_ps(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  ASSERT_EQ(again->size(), 1u);
  const Job& job = again->front().job;
  EXPECT_EQ(job.id, view.job.id);
  EXPECT_EQ(job.spec->name, view.job.spec->name);
  EXPECT_EQ(job.spec->uid, view.job.spec->uid);
  EXPECT_EQ(job.spec->labels, view.job.spec->labels);
  EXPECT_EQ(job.spec->command[2], view.job.spec->command[2]);
  EXPECT_EQ(job.spec->command[3], "caf\xef\xbf\xbd \xef\xbf\xbd/\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(job.spec->request.gpu, view.job.gpu) << "what is asked for in this attempt";
  EXPECT_EQ(job.state, view.job.state);
  EXPECT_EQ(job.outcome, view.job.outcome);
  EXPECT_EQ(job.attempt, view.job.attempt);
  EXPECT_EQ(job.priority, view.job.priority);
  EXPECT_EQ(job.submitted, view.job.submitted);
  EXPECT_EQ(job.started, view.job.started);
  EXPECT_EQ(job.ended, view.job.ended);
  EXPECT_EQ(job.exit->code, view.job.exit->code);
  EXPECT_EQ(job.exit->signal, view.job.exit->signal);
  EXPECT_EQ(job.exit->note, view.job.exit->note);
  EXPECT_EQ(job.grant, view.job.grant);
  std::vector<Bytes> peaks = view.job.exit->peaks;  // one per card
  peaks.resize(job.grant.size());
  EXPECT_EQ(job.exit->peaks, peaks);
  EXPECT_EQ(again->front().used, view.used);
  EXPECT_EQ(again->front().wait, view.wait);
  EXPECT_EQ(again->front().forecast, view.forecast);
  EXPECT_EQ(again->front().idle_since, view.idle_since);
  EXPECT_EQ(encode_ps(*again, {0}), text);
  for (const char* secret : {"aaaa", "bbbb", "4294967293", "runner"})
    EXPECT_EQ(text.find(secret), std::string::npos) << secret;
}

TEST(Ps, AnEmptyListIsAList) {
  EXPECT_NE(encode_ps({}, {0}).find("\"jobs\":[]"), std::string::npos);
  EXPECT_TRUE(decode_ps(encode_ps({}, {0}))->empty());
}

TEST(Ps, ANewerDaemonsWordsAreNoErrorWhereWeCanDoWithout) {
  const std::string text = encode_ps({{full_job(), core::Wait{}}}, {0});
  const Result<std::vector<JobView>> views =
      decode_ps(replaced(replaced(text, "\"gpu-oom\"", "\"abducted\""), "\"reason\":\"resources\"",
                         "\"reason\":\"moon\""));
  ASSERT_TRUE(views.ok());
  EXPECT_EQ(views->front().job.outcome, std::nullopt);
  EXPECT_FALSE(decode_ps(replaced(text, "\"stopping\"", "\"dreaming\"")).ok())
      << "the list of states is closed";
}

TEST(Reports, ReadBack) {
  const StartReport start{{412, UINT64_MAX}, 50};
  EXPECT_EQ(decode_start(encode(start))->program, start.program);
  EXPECT_EQ(decode_start(encode(start))->ago_ms, 50u);
  for (const char* text : {"{}", "{\"pid\":0,\"start_ticks\":1}", "{\"pid\":-3,\"start_ticks\":1}",
                           "{\"pid\":2147483648,\"start_ticks\":1}", "{\"pid\":4}", "[]", "x",
                           "{\"pid\":4,\"start_ticks\":1,\"ago_ms\":1000000000001}",
                           "{\"pid\":4,\"start_ticks\":1,\"ago_ms\":-1}"})
    EXPECT_FALSE(decode_start(text).ok()) << text;
  const EndReport end{full_exit(), start};
  EXPECT_EQ(decode_end(encode(end))->exit, end.exit);
  EXPECT_EQ(decode_end(encode(end))->start->program, start.program);
  EXPECT_EQ(decode_end(encode(EndReport{}))->exit, Exit{});
  EXPECT_FALSE(decode_end(encode(EndReport{}))->start.has_value());
  for (const char* text :
       {"{\"exit_code\":\"0\"}", "{\"exit_code\":2147483648}", "{\"signal\":1e3}",
        "{\"peak_bytes\":[-1]}", "{\"timed_out\":0}", "{\"started\":{}}", "{\"started\":1}"})
    EXPECT_FALSE(decode_end(text).ok()) << text;
}

TEST(Reports, PartsReadBackByThemselves) {
  const Result<Exit> exit = decode_exit(encode(full_exit()));
  ASSERT_TRUE(exit.ok()) << exit.error().message;
  EXPECT_EQ(*exit, full_exit());
  Exit odd;
  odd.note = kOddBytes;
  EXPECT_EQ(decode_exit(encode(odd))->note, kOddBytes);
  Exit not_now;
  not_now.not_started = not_now.not_now = true;
  EXPECT_EQ(*decode_exit(encode(not_now)), not_now);
  EXPECT_FALSE(decode_exit("{\"ran_ms\":-1}").ok());
  const Result<JobSpec> spec = decode_spec(encode(full_detached_spec()));
  ASSERT_TRUE(spec.ok()) << spec.error().message;
  EXPECT_EQ(*spec, full_detached_spec());
  EXPECT_FALSE(decode_spec("{}").ok());
}

TEST(Errors, ReadBack) {
  const Error error =
      Error::infeasible("no card has that").with_evidence("44 GiB").with_hint("--gpu 44G");
  EXPECT_EQ(decode_error(encode_error(error, 69)), error);
  EXPECT_EQ(decode_error("nonsense").code, ErrorCode::kCorrupt);
  EXPECT_EQ(decode_error("{}").code, ErrorCode::kCorrupt);
  EXPECT_EQ(decode_error(R"({"error":{"code":"new","message":"m"}})").message, "m");
}

}  // namespace
}  // namespace mete::wire
