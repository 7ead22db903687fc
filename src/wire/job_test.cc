// SPDX-License-Identifier: Apache-2.0
#include "wire/job.h"

#include <gtest/gtest.h>

#include <limits>

namespace mete::wire {
namespace {

using core::Exit;
using core::Job;
using core::JobId;
using core::JobSpec;
using core::JobState;

const char* const kOddText = "a \"b\"\\\n\t\x01 \xc3\xa9 \xf0\x9f\x9a\x80";
const Bytes kMost = Bytes::from_bytes(std::numeric_limits<std::uint64_t>::max());

// Every field has a value that is not its default.
JobSpec full_spec() {
  JobSpec spec;
  spec.name = kOddText;
  spec.uid = 4294967294;
  spec.user = "alice";
  spec.request.gpu = *core::parse_gpu("2x40%");
  spec.request.devices = {"3", "GPU-0"};
  spec.request.gpu_type = "H200";
  spec.request.procs = 4;
  spec.request.or_cpu = true;
  spec.request.cpus = 8;
  spec.request.ram = kMost;
  spec.command = {"python", "", kOddText};
  spec.folder = "/home/alice/\xc3\xa9";
  spec.time_s = 3600;
  return spec;
}

Exit full_exit() {
  Exit exit;
  exit.code = -1;
  exit.signal = 9;
  exit.not_started = exit.timed_out = exit.gpu_oom = true;
  exit.peaks = {Bytes::from_gib(3), Bytes(), kMost};
  return exit;
}

Job full_job() {
  Job job;
  job.id = JobId{12};
  job.spec = full_spec();
  job.state = JobState::kStopping;
  job.attempt = 3;
  job.submitted = {1'800'000'000'123};
  job.started = WallTime{1'800'000'001'000};
  job.ended = WallTime{1'800'000'002'999};
  job.outcome = core::Outcome::kGpuOom;
  job.exit = full_exit();
  job.grant = {{3, "GPU-3", Bytes::from_gib(8), false}, {0, "GPU-0", kMost, true}};
  job.runner = core::ProcessRef{412, 99};
  job.program = core::ProcessRef{2147483647, UINT64_MAX};
  return job;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what << " in " << text;
  return at == std::string::npos ? text : text.replace(at, what.size(), with);
}

// ---- requests and answers ----------------------------------------------------------------------

TEST(RunRequest, ReadsBack) {
  RunRequest request{full_spec(), 77, false};
  const Result<RunRequest> again = decode_run_request(encode(request));
  ASSERT_TRUE(again.ok()) << again.error().message;
  request.spec.uid = 0;  // who asks is the socket's business
  request.spec.user = "";
  EXPECT_EQ(again->spec, request.spec);
  EXPECT_EQ(again->runner_start_ticks, 77u);
  EXPECT_FALSE(again->wait);
}

TEST(RunRequest, CannotSayWhoseItIs) {
  const std::string text = replaced(encode(RunRequest{full_spec(), 1, true}),
                                    "\"name\":", "\"uid\":0,\"user\":\"root\",\"name\":");
  const Result<RunRequest> request = decode_run_request(text);
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->spec.user, "");
}

TEST(RunRequest, UnknownFieldsAreIgnored) {
  const std::string text = replaced(encode(RunRequest{full_spec(), 1, true}), "{\"job\":{",
                                    "{\"new\":[1,{}],\"job\":{\"newer\":null,");
  EXPECT_TRUE(decode_run_request(text).ok());
}

TEST(RunRequest, EveryWrongKindIsRefused) {
  const std::string good = encode(RunRequest{full_spec(), 1, false});
  for (const auto& [what, with] : std::vector<std::pair<std::string, std::string>>{
           {"\"name\":\"", "\"name\":5,\"x\":\""},
           {"\"command\":[", "\"command\":[1,"},
           {"\"cwd\":\"", "\"cwd\":{},\"x\":\""},
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
           {"\"request\":{", "\"request\":[],\"x\":{"}}) {
    const Result<RunRequest> request = decode_run_request(replaced(good, what, with));
    ASSERT_FALSE(request.ok()) << with;
    EXPECT_EQ(request.error().code, ErrorCode::kInvalid) << with;
  }
}

TEST(RunRequest, AJobHasACommand) {
  RunRequest request{full_spec(), 1, true};
  request.spec.command.clear();
  EXPECT_FALSE(decode_run_request(encode(request)).ok());
  EXPECT_FALSE(decode_run_request("{}").ok());
  EXPECT_FALSE(decode_run_request("[]").ok());
  EXPECT_FALSE(decode_run_request("").ok());
}

TEST(RunRequest, WhatIsNotUtf8IsReplacedNotRefused) {
  RunRequest request{full_spec(), 1, true};
  request.spec.command = {"cat", "caf\xe9"};
  const Result<RunRequest> again = decode_run_request(encode(request));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->spec.command[1], "caf\xef\xbf\xbd");
}

TEST(RunReply, ReadsBack) {
  RunReply reply;
  reply.view = {full_job(), core::Wait{core::Reason::kPriority, kOddText, {{3}, {9}}}, {}};
  reply.tag = "18446744073709551615";
  reply.cards = {{"NVIDIA H200", "H200", Bytes::from_gib(141), Bytes::from_gib(140)}};
  reply.driver = "580.159.04";
  reply.readings = "/run/readings";
  reply.simulated = "4xH200";
  const std::string text = encode(reply);
  const Result<RunReply> again = decode_run_reply(text);
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->tag, reply.tag);
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
  const JobView view{full_job(),
                     core::Wait{core::Reason::kDrained, "8 GiB", {JobId{7}}},
                     {Bytes::from_gib(5), std::nullopt}};
  const Result<std::vector<JobView>> again = decode_ps(encode_ps({view}, {0}));
  ASSERT_TRUE(again.ok()) << again.error().message;
  ASSERT_EQ(again->size(), 1u);
  const Job& job = again->front().job;
  EXPECT_EQ(job.id, view.job.id);
  EXPECT_EQ(job.spec.name, view.job.spec.name);
  EXPECT_EQ(job.spec.uid, view.job.spec.uid);
  EXPECT_EQ(job.spec.command, view.job.spec.command);
  EXPECT_EQ(job.spec.request.gpu, view.job.spec.request.gpu);
  EXPECT_EQ(job.state, view.job.state);
  EXPECT_EQ(job.outcome, view.job.outcome);
  EXPECT_EQ(job.attempt, view.job.attempt);
  EXPECT_EQ(job.submitted, view.job.submitted);
  EXPECT_EQ(job.started, view.job.started);
  EXPECT_EQ(job.ended, view.job.ended);
  EXPECT_EQ(job.exit->code, view.job.exit->code);
  EXPECT_EQ(job.exit->signal, view.job.exit->signal);
  EXPECT_EQ(job.grant, view.job.grant);
  std::vector<Bytes> peaks = view.job.exit->peaks;  // as many as there are cards
  peaks.resize(job.grant.size());
  EXPECT_EQ(job.exit->peaks, peaks);
  EXPECT_EQ(again->front().used, view.used);
  EXPECT_EQ(again->front().wait, view.wait);
}

TEST(Ps, AnEmptyListIsAList) {
  EXPECT_NE(encode_ps({}, {0}).find("\"jobs\":[]"), std::string::npos);
  EXPECT_TRUE(decode_ps(encode_ps({}, {0}))->empty());
}

TEST(Ps, ANewerDaemonsWordsAreNoErrorWhereWeCanDoWithout) {
  const std::string text = encode_ps({{full_job(), core::Wait{}, {}}}, {0});
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

TEST(Errors, ReadBack) {
  const Error error =
      Error::infeasible("no card has that").with_evidence("44 GiB").with_hint("--gpu 44G");
  EXPECT_EQ(decode_error(encode_error(error, 69)), error);
  EXPECT_EQ(decode_error("nonsense").code, ErrorCode::kCorrupt);
  EXPECT_EQ(decode_error("{}").code, ErrorCode::kCorrupt);
  EXPECT_EQ(decode_error(R"({"error":{"code":"new","message":"m"}})").message, "m");
}

// ---- the state ---------------------------------------------------------------------------------

core::State::Parts full_parts() {
  core::State::Parts parts;
  parts.last_seq = 99;
  parts.last_job = 12;
  Job plain;
  plain.id = JobId{3};
  plain.spec.name = "plain";
  parts.jobs = {full_job(), plain};
  parts.lost = {"GPU-0", "GPU-3"};
  return parts;
}

TEST(Parts, ReadBack) {
  const core::State::Parts parts = full_parts();
  const Result<core::State::Parts> again = decode_parts(encode(parts));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->last_seq, parts.last_seq);
  EXPECT_EQ(again->last_job, parts.last_job);
  EXPECT_EQ(again->jobs, parts.jobs);
  EXPECT_EQ(again->lost, parts.lost);
}

TEST(Parts, AJobWithoutAUserNameKeepsItsOwner) {
  core::State::Parts parts = full_parts();
  parts.jobs[0].spec.user = "";
  EXPECT_EQ(decode_parts(encode(parts))->jobs[0].spec.uid, 4294967294u);
}

TEST(Parts, WhatCannotBeIsCorrupt) {
  core::State::Parts twice = full_parts();
  twice.jobs.push_back(twice.jobs.front());
  EXPECT_EQ(decode_parts(encode(twice)).error().code, ErrorCode::kCorrupt);
  core::State::Parts ahead = full_parts();
  ahead.last_job = 11;
  EXPECT_EQ(decode_parts(encode(ahead)).error().code, ErrorCode::kCorrupt);
  core::State::Parts why = full_parts();
  why.jobs[0].outcome.reset();
  EXPECT_FALSE(decode_parts(encode(why)).ok()) << "it is being ended, and nobody knows why";
}

}  // namespace
}  // namespace mete::wire
