// SPDX-License-Identifier: Apache-2.0
// Pool files, and the output of mete place and mete advise.
#include <gtest/gtest.h>

#include "cli/advise_text.h"
#include "cli/place_text.h"
#include "cli/pool_file.h"

namespace mete::cli {
namespace {

TypeTables types() {
  TypeTables tables;
  tables.cards = {{"T4", 15'360}, {"H200", 143'771}};
  tables.instances = {{"g4dn.12xlarge", 4, "T4", 16'384, 48'000, 196'608}};
  return tables;
}

std::string wrong(const std::string& text) {
  const Result<PoolFile> file = parse_pool_file(text, "p.yaml", types());
  return file ? "" : file.error().message;
}

TEST(PoolFileTest, NodesInstancesAndWhatRunsThere) {
  const Result<PoolFile> file = parse_pool_file(R"(
policy: best-fit
nodes:
  - {name: box, cards: 2xH200, cpus: 32.5, ram: 64G, attributes: {rack: r1, ssd: }}
  - {instance: g4dn.12xlarge, count: 2}
jobs:
  - {gpu: 0.5, cpus: 4, node: box, cards: [1], count: 2}
  - {gpu: 2, gpu-type: T4}
)",
                                                "p.yaml", types());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->policy, "best-fit");
  ASSERT_EQ(file->nodes.size(), 3u);
  EXPECT_EQ(file->nodes[0].cpu_milli, 32'500);
  EXPECT_EQ(file->nodes[0].card_mib, 143'771);
  EXPECT_EQ(file->nodes[0].attributes.at("rack"), "r1");
  EXPECT_EQ(file->nodes[0].attributes.at("ssd"), "");
  EXPECT_EQ(file->nodes[2].attributes.at("ecs.instance-type"), "g4dn.12xlarge");
  ASSERT_EQ(file->jobs.size(), 3u);
  EXPECT_EQ(file->jobs[1].cards, std::vector<std::uint32_t>{1});
  EXPECT_EQ(file->jobs[2].ask.types, std::vector<std::string>{"T4"});
}

TEST(PoolFileTest, CardsAloneAreAPool) {
  const Result<PoolFile> file = parse_pool_file("cards: 2xH200+1xT4\n", "p.yaml", types());
  ASSERT_TRUE(file);
  EXPECT_EQ(file->nodes.size(), 2u);
}

TEST(PoolFileTest, ErrorsHaveTheirPlace) {
  EXPECT_EQ(wrong("nodes: [{name: a, crads: 2xT4}]"), "p.yaml:1:19: there is no key 'crads'");
  EXPECT_EQ(wrong("nodes:\n  - {name: a, cards: 2xT4+1xH200}\n"),
            "p.yaml:2:22: a node has cards of one type; write a node for each");
  EXPECT_EQ(wrong("nodes:\n  - {name: a, cards: 2xT5}\n"),
            "p.yaml:2:22: there is no card type 'T5'");
  EXPECT_EQ(wrong("nodes: [{name: a, cpus: many}]"), "p.yaml:1:25: not a number of CPUs: 'many'");
  EXPECT_EQ(wrong("nodes: [{name: a}, {name: a}]"), "p.yaml:1:1: there are two nodes 'a'");
  EXPECT_NE(wrong("policy: mete\n"), "");
  EXPECT_NE(wrong(""), "");
  EXPECT_NE(wrong("nodes: 5"), "");
  EXPECT_NE(wrong("nodes: [{name: [a]}]"), "");
  EXPECT_NE(wrong("{"), "");
  EXPECT_NE(wrong("cards: T4\njobs: [{gpu: 2x}]"), "");
  EXPECT_NE(wrong("cards: T4\njobs: [{cards: [1]}]"), "");
}

TEST(PlaceText, SaysWhereOrWhyNotAndWhatWouldFit) {
  PlaceReport report;
  report.request = "--gpu 0.5";
  report.decision = PlaceReport::Decision::kPlaced;
  report.placed = {{"box", {0, 1}, "H200", 500, std::int64_t{70} << 30}};
  EXPECT_EQ(place_text(report), "box, cards 0, 1 (H200): 50 %, 70 GiB of each");
  report.placed.clear();
  report.decision = PlaceReport::Decision::kWait;
  report.nodes.nodes[static_cast<std::size_t>(core::cluster::Cause::kCards)] = 2;
  report.changes = {{{core::cluster::Aspect::kShare}, {.cards = 1, .share = 250}, 500'000}};
  EXPECT_EQ(place_text(report),
            "no room now for --gpu 0.5\n\n2 nodes: too few cards with that much left\n\n"
            "what would fit now:\n  --gpu 0.25");
}

TEST(AdviseText, TheSmallestComesFirst) {
  AdviseReport report;
  report.request = "--gpu 12G";
  report.job = "12";
  report.gpu = "12G";
  report.why = "its peak was 10 GiB";
  AdviseReport::Option option;
  option.node.name = "g4dn.xlarge";
  option.node.cards = 1;
  option.node.card_type = "T4";
  option.node.card_mib = 16'384;
  option.node.cpu_milli = 4000;
  option.node.ram_mib = 16'384;
  option.share = 750;
  report.options = {option};
  const std::string text = advise_text(report);
  EXPECT_TRUE(text.starts_with("job 12: --gpu 12G, since its peak was 10 GiB\n\nfor --gpu 12G\n"))
      << text;
  EXPECT_NE(text.find("g4dn.xlarge  1 x T4, 16 GiB     4  16 GiB          75 %"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace mete::cli
