// SPDX-License-Identifier: Apache-2.0
#include "serve/metrics.h"

#include <gtest/gtest.h>

#include <set>

#include "base/text.h"

namespace mete::serve {
namespace {

wire::CardView card() {
  wire::CardView card;
  card.index = 3;
  card.uuid = "GPU-3";
  card.name = "NVIDIA \"H\\200\"\n";
  card.state = "drained";
  card.granted = Bytes::from_gib(8);
  return card;
}

bool has(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(Metrics, AReadingThatIsNotThereHasNoSample) {
  Figures figures;
  figures.cards = {card()};
  const std::string text = metrics_text(figures);
  for (const char* name : {"mete_card_memory_used_bytes", "mete_card_utilisation_ratio",
                           "mete_card_temperature_celsius", "mete_card_power_watts",
                           "mete_card_reading_age_seconds", "mete_queue_oldest_wait_seconds"})
    EXPECT_EQ(text.find(name), std::string::npos) << name;
  EXPECT_TRUE(has(text, R"(mete_card_memory_granted_bytes{card="3",uuid="GPU-3"} 8589934592)"));
}

TEST(Metrics, ZeroIsAReadingAndUnitsAreThoseOfTheName) {
  Figures figures;
  figures.cards = {card()};
  figures.cards[0].used = Bytes();
  figures.cards[0].utilisation_pct = 37;
  figures.cards[0].temperature_c = -4;
  figures.cards[0].power_w = 612.5;
  figures.cards[0].reading_age_s = 0.25;
  const std::string text = metrics_text(figures);
  EXPECT_TRUE(has(text, R"(mete_card_memory_used_bytes{card="3",uuid="GPU-3"} 0)"));
  EXPECT_TRUE(has(text, R"(mete_card_utilisation_ratio{card="3",uuid="GPU-3"} 0.37)"));
  EXPECT_TRUE(has(text, R"(mete_card_temperature_celsius{card="3",uuid="GPU-3"} -4)"));
  EXPECT_TRUE(has(text, R"(mete_card_power_watts{card="3",uuid="GPU-3"} 612.5)"));
  EXPECT_TRUE(has(text, R"(mete_card_reading_age_seconds{card="3",uuid="GPU-3"} 0.25)"));
}

TEST(Metrics, LabelsAreEscaped) {
  Figures figures;
  figures.cards = {card()};
  EXPECT_NE(metrics_text(figures).find(R"(name="NVIDIA \"H\\200\"\n",)"), std::string::npos);
}

TEST(Metrics, ACardIsInOneState) {
  Figures figures;
  figures.cards = {card()};
  const std::string text = metrics_text(figures);
  EXPECT_TRUE(has(text, R"(mete_card_state{card="3",uuid="GPU-3",state="drained"} 1)"));
  EXPECT_TRUE(has(text, R"(mete_card_state{card="3",uuid="GPU-3",state="ok"} 0)"));
}

TEST(Metrics, JobsBeyondTheMostAreSummedUp) {
  Figures figures;
  figures.most_jobs = 2;
  for (int i = 1; i <= 5; ++i)
    figures.jobs.push_back({std::to_string(i),
                            "alice",
                            Bytes::from_gib(10),
                            i == 5 ? std::nullopt : std::optional(Bytes::from_gib(1)),
                            {},
                            2.0,
                            {},
                            1});
  const std::string text = metrics_text(figures);
  EXPECT_TRUE(has(text, R"(mete_job_memory_cap_bytes{job_id="2",user="alice"} 10737418240)"));
  EXPECT_EQ(text.find(R"(job_id="3")"), std::string::npos);
  EXPECT_TRUE(has(text, R"(mete_job_memory_cap_bytes{job_id="other",user="other"} 32212254720)"));
  EXPECT_TRUE(has(text, R"(mete_job_memory_used_bytes{job_id="other",user="other"} 2147483648)"));
  EXPECT_TRUE(has(text, R"(mete_job_gpu_oom_total{job_id="other",user="other"} 3)"));
  EXPECT_EQ(text.find("mete_job_memory_peak_bytes"), std::string::npos) << "of none it is known";
  figures.most_jobs = 0;
  EXPECT_EQ(metrics_text(figures).find("alice"), std::string::npos);
}

TEST(Metrics, AHistogramIsCumulativeAndEndsWithAll) {
  Figures figures;
  figures.health.decisions.add(std::chrono::microseconds(100));  // a bound belongs to its bucket
  figures.health.decisions.add(std::chrono::milliseconds(2));
  figures.health.decisions.add(std::chrono::seconds(60));
  const std::string text = metrics_text(figures);
  const std::string name = "mete_decision_duration_seconds";
  EXPECT_TRUE(has(text, name + R"(_bucket{le="0.0001"} 1)"));
  EXPECT_TRUE(has(text, name + R"(_bucket{le="0.001"} 1)"));
  EXPECT_TRUE(has(text, name + R"(_bucket{le="0.0025"} 2)"));
  EXPECT_TRUE(has(text, name + R"(_bucket{le="2.5"} 2)"));
  EXPECT_TRUE(has(text, name + R"(_bucket{le="+Inf"} 3)"));
  EXPECT_NE(text.find("\n" + name + "_sum 60.0021"), std::string::npos);
  EXPECT_TRUE(has(text, name + "_count 3"));
}

TEST(Metrics, WhatCountsIsThereFromTheBeginning) {
  const std::string text = metrics_text({});
  EXPECT_TRUE(has(text, R"(mete_queue_jobs{reason="resources"} 0)"));
  EXPECT_TRUE(has(text, R"(mete_jobs_ended_total{outcome="gpu-oom"} 0)"));
  EXPECT_TRUE(has(text, R"(mete_jobs{state="parked"} 0)"));
  EXPECT_TRUE(has(text, "mete_jobs_escaped 0"));
}

TEST(Metrics, WhatMayYetBeUndoneIsNotTold) {
  Figures figures;
  figures.settled = false;
  figures.disk_full = true;
  figures.cards = {card()};
  const std::string text = metrics_text(figures);
  EXPECT_TRUE(has(text, "mete_daemon_disk_full 1"));
  for (const char* name : {"mete_card", "mete_job", "mete_queue"})
    EXPECT_EQ(text.find(std::string("\n") + name), std::string::npos) << name;
}

TEST(Metrics, EveryFamilyIsSaidOnceAndBeforeItsSamples) {
  Figures figures;
  figures.cards = {card(), card()};
  figures.most_jobs = 9;
  figures.jobs = {{"1", "alice", {}, {}, {}, 0, 7.5, 0}, {"2", "bob", {}, {}, {}, 0, 7.5, 0}};
  std::set<std::string> known;
  std::string family;
  const std::string text = metrics_text(figures);
  for (const std::string_view line : base::split(text, '\n')) {
    if (line.empty()) continue;
    if (line.starts_with("# HELP ")) {
      family = std::string(line.substr(7, line.find(' ', 7) - 7));
      EXPECT_TRUE(known.insert(family).second) << family;
    } else if (!line.starts_with("#")) {
      EXPECT_TRUE(line.starts_with(family)) << line;
    }
  }
  EXPECT_GT(known.size(), 20u);
}

}  // namespace
}  // namespace mete::serve
