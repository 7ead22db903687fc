// SPDX-License-Identifier: Apache-2.0
#include "simulate/history.h"

#include <gtest/gtest.h>

#include "core/request/gpu.h"

namespace mete::simulate {
namespace {

std::string job(const std::string& id, const std::string& rest) {
  return R"({"id":")" + id +
         R"(","name":"train","user":"alice","uid":1000,"request":"1","priority":2,"grant":[],)"
         R"("command":["x"],"labels":{},"submitted_at":"2026-11-15T09:00:00.000Z",)" +
         rest + "}";
}

std::string document(const std::vector<std::string>& jobs) {
  std::string text = R"({"schema":"mete.ps/1","at":"2026-11-15T12:00:00.000Z","jobs":[)";
  for (std::size_t i = 0; i < jobs.size(); ++i) text += (i == 0 ? "" : ",") + jobs[i];
  return text + "]}";
}

TEST(History, JobsThatRanHaveTheirTimesAndWaits) {
  const Result<History> history = parse_history(document(
      {job("1", R"("state":"ended","outcome":"ok","attempt":1,"exit_code":0,)"
                R"("started_at":"2026-11-15T09:01:00.000Z","ended_at":"2026-11-15T09:11:00.000Z")"),
       job("2", R"("state":"running","attempt":1,"started_at":"2026-11-15T09:03:00.000Z")"),
       job("3", R"("state":"pending","attempt":1,"reason":"resources")"),
       job("4",
           R"("state":"ended","outcome":"ok","attempt":2,"exit_code":0,)"
           R"("started_at":"2026-11-15T09:01:00.000Z","ended_at":"2026-11-15T09:02:00.000Z")")}));
  ASSERT_TRUE(history) << history.error().message;
  ASSERT_EQ(history->jobs.size(), 2u);
  EXPECT_EQ(history->left_out, 2u);
  EXPECT_EQ(history->jobs[0].run_ms, 600'000);
  EXPECT_EQ(history->jobs[0].priority, 2);
  EXPECT_EQ(to_string(*history->jobs[0].request.gpu), "1");
  EXPECT_EQ(history->jobs[1].run_ms, 480'000);  // as far as the document goes
  EXPECT_DOUBLE_EQ(history->recorded.mean_s, 120);
}

// The document does not have --devices; it has the cards.
TEST(History, CardsThatWereNamedAreWholeCards) {
  const auto named = [](const std::string& grant) {
    return R"({"id":"1","name":"train","user":"alice","uid":1000,"priority":0,"grant":[)" + grant +
           R"(],"command":["x"],"labels":{},"submitted_at":"2026-11-15T09:00:00.000Z",)"
           R"("state":"ended","outcome":"ok","attempt":1,"exit_code":0,)"
           R"("started_at":"2026-11-15T09:01:00.000Z","ended_at":"2026-11-15T09:02:00.000Z"})";
  };
  const std::string card = R"({"card":"GPU-0","index":0,"bytes":1073741824,"whole":true})";
  const Result<History> history = parse_history(document({named(card + "," + card), named("")}));
  ASSERT_TRUE(history) << history.error().message;
  ASSERT_EQ(history->jobs.size(), 2u);
  EXPECT_EQ(history->jobs[0].request.gpu, core::whole_cards(2));
  EXPECT_EQ(history->jobs[1].request.gpu, core::no_gpu()) << "--or-cpu, without room";
}

TEST(History, AnotherDocumentIsAnError) {
  EXPECT_FALSE(parse_history("{}"));
  EXPECT_FALSE(parse_history(R"({"schema":"mete.cards/1","at":"x","cards":[]})"));
  EXPECT_FALSE(parse_history("not JSON"));
}

}  // namespace
}  // namespace mete::simulate
