// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "cli/simulate_text.h"

namespace mete::cli {
namespace {

SimulateReport report() {
  SimulateReport report;
  report.policy = "mete";
  report.mix = "jobs";
  report.nodes = 4;
  report.arrivals = 40;
  report.cpu_s = 0.01;
  report.times_ns = {100, 300, 200, 900};
  report.score.cards = 12;
  report.score.final_alloc = 91.2345;
  report.score.alloc100 = 88.125;
  report.score.accepted_pct = {{"1gpu", 50}, {"cpu", 100}, {"share", 75.5}};
  report.score.rejected = 8;
  return report;
}

TEST(SimulateText, TheDocumentLeavesOutWhatIsNotKnown) {
  EXPECT_EQ(
      simulate_json(report(), "T"),
      R"({"schema":"mete.simulate/1","at":"T","policy":"mete","mix":"jobs","seed":0,)"
      R"("nodes":4,"cards":12,"arrivals":40,"final_alloc":91.234,"alloc100":88.12,)"
      R"("accepted_pct":{"1gpu":50.00,"cpu":100.00,"share":75.50},"rejected":8,"moves":0,)"
      R"("moved_gpu":0.000,"cpu_s":0.0100,"decisions_per_s":4000,"p50_ns":300,"p99_ns":900})");
}

TEST(SimulateText, PeopleReadWords) {
  const std::string text = simulate_text(report());
  EXPECT_NE(text.find("mete placed 32 of 40 jobs on 4 nodes with 12 cards"), std::string::npos);
  EXPECT_NE(text.find("placed of jobs with 1 card        50.00 %"), std::string::npos) << text;
  EXPECT_NE(text.find("first refused at                  -"), std::string::npos) << text;
}

TEST(SimulateText, TheBarIsFullAtTheEnd) {
  EXPECT_EQ(progress_bar(5000, 10000),
            "simulating  50 % [###############...............] 5000 of 10000");
  EXPECT_EQ(progress_bar(3, 3), "simulating 100 % [##############################] 3 of 3");
  EXPECT_EQ(progress_bar(0, 0), "simulating 100 % [##############################] 0 of 0");
}

}  // namespace
}  // namespace mete::cli
