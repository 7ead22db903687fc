// SPDX-License-Identifier: Apache-2.0
// Replays on the small trace of tests/data/simulate. METE_OPENB names a folder with the openb
// traces and their arrivals, for the published figures; without it those tests are skipped.
#include "simulate/replay.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace mete::simulate {
namespace {

using namespace core::cluster;

std::string slurp(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

Trace sample() {
  const char* source = std::getenv("METE_SOURCE_DIR");
  const std::string folder =
      std::string(source == nullptr ? "." : source) + "/tests/data/simulate/";
  Trace trace;
  trace.nodes = *parse_nodes(slurp(folder + "nodes.csv"), "nodes.csv");
  trace.jobs = *parse_jobs(slurp(folder + "jobs.csv"), "jobs.csv", trace.nodes);
  trace.arrivals =
      *parse_arrivals(slurp(folder + "arrivals.txt"), "arrivals.txt", trace.jobs.size());
  return trace;
}

Replay run(const Trace& trace, std::string_view policy, MixFrom mix = MixFrom::kJobs) {
  return *replay(trace, **make_policy(policy, 1), mix);
}

TEST(Replay, DecidesEveryArrivalAndCountsItOnce) {
  const Trace trace = sample();
  for (const std::string_view policy : policy_names()) {
    const Replay decided = run(trace, policy);
    ASSERT_EQ(decided.spots.size(), trace.arrivals.size());
    const Score result = *score(trace, decided);
    std::int64_t used = 0;
    std::uint64_t rejected = 0;
    for (std::size_t i = 0; i < decided.spots.size(); ++i) {
      if (decided.spots[i])
        used += trace.jobs[trace.arrivals[i]].ask.total_share();
      else
        ++rejected;
    }
    EXPECT_EQ(result.cards, 12u);
    EXPECT_DOUBLE_EQ(result.final_alloc, static_cast<double>(used) / 120.0);
    EXPECT_EQ(result.rejected, rejected);
    EXPECT_GT(rejected, 0u);
    EXPECT_TRUE(result.first_reject_at.has_value());
  }
}

TEST(Replay, TheSameTraceGivesTheSameDecisions) {
  const Trace trace = sample();
  for (const std::string_view policy : policy_names())
    EXPECT_EQ(decisions_csv(run(trace, policy)), decisions_csv(run(trace, policy)));
}

TEST(Replay, OtherNamesAndRowsGiveTheSameScore) {
  const Trace trace = sample();
  const Score first = *score(trace, run(trace, "mete"));
  Trace other = trace;
  std::reverse(other.nodes.begin(), other.nodes.end());
  std::reverse(other.jobs.begin(), other.jobs.end());
  for (std::uint32_t& row : other.arrivals)
    row = static_cast<std::uint32_t>(other.jobs.size()) - 1 - row;
  for (NodeSpec& node : other.nodes) node.name = "x" + node.name;
  const Score second = *score(other, run(other, "mete"));
  EXPECT_EQ(second.final_alloc, first.final_alloc);
  EXPECT_EQ(second.accepted_pct, first.accepted_pct);
}

TEST(Replay, ALearnedMixKnowsOnlyWhatHasArrived) {
  Trace trace = sample();
  const std::vector<std::uint32_t> all = trace.arrivals;
  const Replay whole = run(trace, "mete", MixFrom::kLearned);
  trace.arrivals.resize(all.size() / 2);
  trace.jobs.push_back({"never comes", {.cpu_milli = 60000, .cards = 2, .share = 1000}});
  const Replay half = run(trace, "mete", MixFrom::kLearned);
  EXPECT_TRUE(std::equal(half.spots.begin(), half.spots.end(), whole.spots.begin()));
}

TEST(Replay, WritesDecisionsAsTheRefereeReadsThem) {
  Replay decided;
  Spot spot;
  spot.node = NodeId{17};
  spot.count = 2;
  spot.cards = {0, 3};
  decided.spots = {spot, std::nullopt, Spot{}};
  EXPECT_EQ(decisions_csv(decided), "0,17,0-3\n1,-1,\n2,0,\n");
}

}  // namespace
}  // namespace mete::simulate
