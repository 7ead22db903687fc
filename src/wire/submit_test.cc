// SPDX-License-Identifier: Apache-2.0
// Submit requests: full and minimal ones must come back unchanged, with words that are not UTF-8;
// requests that name an owner, or have unknown or wrong fields, are refused by name. Then the
// contents that a request brings along, and the reply.
#include "wire/submit.h"

#include <gtest/gtest.h>

#include "wire/test/full.h"

namespace mete::wire {
namespace {

SubmitRequest full_request() {
  return {full_detached_spec(),
          {"HOME=/home/alice", std::string("NAME=") + kOddBytes, "EMPTY=", "A=b=c"},
          "#!/bin/sh\n# \xe9\necho\n",
          false};
}

std::string refusal(const std::string& json) {
  const Result<JobRequest> request = decode_job_request(json);
  return request ? "taken" : request.error().message;
}

TEST(SubmitRequest, ReadsBack) {
  const SubmitRequest request = full_request();
  const Result<SubmitRequest> again = decode_submit_request(encode(request));
  ASSERT_TRUE(again.ok()) << again.error().message;
  core::JobSpec spec = request.spec;
  spec.uid = 0;
  spec.user = "";
  spec.detached->gid = 0;
  spec.detached->groups.clear();
  spec.detached->environment = spec.detached->script = "";
  EXPECT_EQ(again->spec, spec);
  EXPECT_EQ(again->environment, request.environment);
  EXPECT_EQ(again->script, request.script);
  EXPECT_FALSE(again->wait);
}

TEST(SubmitRequest, CannotSayWhoseItIs) {
  const std::string good = encode(full_request());
  for (const char* field : {R"("uid":0,)", R"("user":"root",)", R"("key":"of another",)"})
    EXPECT_NE(refusal(replaced(good, "\"detached\":{", field + std::string("\"detached\":{"))),
              "taken")
        << field;
  for (const char* field :
       {R"("gid":0,)", R"("groups":[0],)", R"("environment":"x",)", R"("script":"y",)"})
    EXPECT_NE(refusal(replaced(good, "\"detached\":{", "\"detached\":{" + std::string(field))),
              "taken")
        << field;
}

TEST(SubmitRequest, AFieldThatIsNotKnownIsRefusedByName) {
  const std::string submit = encode(full_request());
  ASSERT_EQ(refusal(submit), "taken");
  for (const char* where :
       {"{\"job\":{", "\"request\":{", "\"detached\":{", "\"notify\":{", "\"after\":[{"}) {
    const std::string with = where + std::string("\"gpu_memory\":7,");
    EXPECT_NE(refusal(replaced(submit, where, with)).find("unknown field 'gpu_memory'"),
              std::string::npos)
        << with << ": " << refusal(replaced(submit, where, with));
  }
  EXPECT_EQ(refusal(replaced(submit, "{\"job\":", "{\"limit\":null,\"job\":")),
            "the request: unknown field 'limit'");
  EXPECT_EQ(refusal(R"({"job":{"name":"a","command":["a"],"request":{}},"runner_start_ticks":1,)"
                    R"("key":"k"})"),
            "the request: unknown field 'key'")
      << "a run is known by its runner";
}

TEST(SubmitRequest, HasAKeyOfItsOwn) {
  SubmitRequest request = full_request();
  EXPECT_EQ(encode(request).find("\"key\""), std::string::npos);
  request.spec.key = "0f-A_9";
  EXPECT_EQ(decode_submit_request(encode(request))->spec.key, "0f-A_9");
  EXPECT_EQ(decode_spec(encode(request.spec))->key, "0f-A_9") << "the log has it";
  for (const std::string& wrong :
       {std::string("a b"), std::string("\xc3\xa4"), std::string(65, 'a')}) {
    request.spec.key = wrong;
    EXPECT_FALSE(decode_submit_request(encode(request))) << wrong;
  }
  EXPECT_TRUE(knows_keys(R"({"api":1,"keys":true})"));
  for (const char* other : {R"({"api":1})", R"({"keys":1})", "", "[]"})
    EXPECT_FALSE(knows_keys(other)) << other;
}

TEST(SubmitRequest, EveryWrongKindIsRefused) {
  const std::string good = encode(full_request());
  for (const auto& [what, with] : std::vector<std::pair<std::string, std::string>>{
           {"\"umask\":511", "\"umask\":512"},
           {"\"umask\":511", "\"umask\":-1"},
           {"\"limits\":\"0:1:-", "\"limits\":\"32:1:-"},
           {"\"limits\":\"0:1:-", "\"limits\":\"0:1"},
           {"\"limits\":\"0:1:-", "\"limits\":\"0:1:-:-"},
           {"\"limits\":\"0:1:-", "\"limits\":\"-:1:-"},
           {"\"limits\":\"0:1:-", "\"limits\":\"0:-1:-"},
           {"\"limits\":\"0:1:-", "\"limits\":\"0:1:- "},
           {"\"limits\":\"0:1:-", "\"limits\":[],\"x\":\""},
           {"\"tty\":true", "\"tty\":\"yes\""},
           {"\"detached\":{", "\"detached\":[],\"x\":{"},
           {"\"detached\":{", "\"detached\":null,\"x\":{"},
           {"\"HOME=/home/alice\"", "\"HOME\""},
           {"\"HOME=/home/alice\"", "\"=C:\""},
           {"\"HOME=/home/alice\"", "\"A=\\u0000\""},
           {"\"HOME=/home/alice\"", "7"},
           {"\"environment\":[", "\"environment\":{},\"x\":["},
           {"\"python\"", "\"py\\u0000thon\""},
           {"\"/dev/null\"", "\"/dev/\\u0000null\""},
           {"\"script\":", "\"script\":7,\"x\":"}}) {
    const Result<SubmitRequest> request = decode_submit_request(replaced(good, what, with));
    ASSERT_FALSE(request.ok()) << with;
    EXPECT_EQ(request.error().code, ErrorCode::kInvalid) << with;
  }
  SubmitRequest nothing = full_request();
  nothing.spec.command.clear();
  EXPECT_FALSE(decode_submit_request(encode(nothing)).ok());
  for (const char* text : {"", "{}", "[]", R"({"job":{}})"})
    EXPECT_FALSE(decode_submit_request(text).ok()) << text;
}

TEST(Contents, ACommandIsKeptWordByWord) {
  const std::vector<std::string> words = {"sh", "", "a b", "\xff\n", ""};
  EXPECT_EQ(words_in(blob_of(words)), words);
  EXPECT_EQ(words_in(blob_of({})), std::vector<std::string>{});
}

TEST(Contents, TheBeginningOfACommandIsListedAsItIs) {
  const std::vector<std::string> beginning =
      beginning_of({"python", "train.py", std::string(300'000, 'x'), "more"});
  ASSERT_EQ(beginning.size(), 3u);
  EXPECT_EQ(beginning[1], "train.py");
  EXPECT_TRUE(beginning[2].ends_with("…"));
  EXPECT_EQ(beginning_of(beginning), beginning);
  EXPECT_EQ(beginning_of({"true"}), std::vector<std::string>{"true"});
}

TEST(JobRequest, IsASubmitWhereItIsDetached) {
  const Result<JobRequest> submit = decode_job_request(encode(full_request()));
  ASSERT_TRUE(submit.ok()) << submit.error().message;
  ASSERT_TRUE(std::holds_alternative<SubmitRequest>(*submit));
  EXPECT_EQ(std::get<SubmitRequest>(*submit).environment.size(), 4u);
  const Result<JobRequest> run = decode_job_request(encode(RunRequest{full_spec(), 77, true}));
  ASSERT_TRUE(run.ok()) << run.error().message;
  ASSERT_TRUE(std::holds_alternative<RunRequest>(*run));
  EXPECT_EQ(std::get<RunRequest>(*run).runner_start_ticks, 77u);
  for (const char* text : {"", "{}", "[]", R"({"job":7})", R"({"job":{"detached":1}})"})
    EXPECT_FALSE(decode_job_request(text).ok()) << text;
}

TEST(SubmitReply, ReadsBack) {
  for (const SubmitReply& reply : {SubmitReply{{12}, 0}, SubmitReply{{UINT64_MAX}, 50'000}}) {
    const Result<SubmitReply> again = decode_submit_reply(encode(reply, {0}));
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(*again, reply);
  }
  EXPECT_EQ(encode(SubmitReply{{12}, 0}, {0}),
            R"({"schema":"mete.submit/1","at":"1970-01-01T00:00:00.000Z","id":"12"})");
  EXPECT_FALSE(decode_submit_reply("{}").ok());
  EXPECT_FALSE(decode_submit_reply(R"({"id":"12","elements":-1})").ok());
}

}  // namespace
}  // namespace mete::wire
