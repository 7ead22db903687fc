// SPDX-License-Identifier: Apache-2.0
#include "simulate/pool.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

namespace mete::simulate {
namespace {

std::string text_of(const std::string& path) {
  const char* source = std::getenv("METE_SOURCE_DIR");
  std::ifstream in(std::string(source == nullptr ? "." : source) + "/" + path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string shipped(const std::string& name) { return text_of("data/" + name); }

std::vector<CardType> cards() { return *parse_card_types(shipped("card-types.csv"), "c.csv"); }
std::vector<InstanceType> instances() {
  return *parse_instance_types(shipped("instance-types.csv"), "i.csv");
}

TEST(Pool, CardsOfSeveralTypesAreOneMachine) {
  const std::vector<PoolPart> parts = *parse_pool("2xH200+T4", cards());
  EXPECT_EQ(to_string(parts), "2xH200+1xT4");
  core::Pool pool;
  add_cards(pool, parts);
  ASSERT_EQ(pool.cards.size(), 3u);
  EXPECT_EQ(pool.cards[2].card.index, 2u);
  EXPECT_EQ(pool.cards[2].card.type, "T4");
  EXPECT_EQ(pool.cards[0].card.capacity, Bytes::from_mib(143771));
  const auto nodes = nodes_of(parts);
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].cards, 2u);
}

TEST(Pool, ACardThatNobodyKnowsHasItsMemorySaid) {
  EXPECT_EQ(parse_pool("3xMINE:24G", cards())->front(), (PoolPart{3, "MINE", 24 * 1024}));
  const auto unknown = parse_pool("3xH20O", cards());
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().hint, "did you mean H200?");
}

TEST(Pool, WordsThatMakeNoPoolAreErrors) {
  for (const char* text : {"", "+", "0xH200", "2x", "1025xH200", "H200:0G", "H200:x", "2xH200,1xT4",
                           "99999999999999999999xH200", "600xH200+600xT4"})
    EXPECT_FALSE(parse_pool(text, cards())) << text;
}

TEST(Pool, InstancesAreNodesWithTheirType) {
  const auto nodes = *parse_instances("2xg4dn.12xlarge,p3.2xlarge", instances());
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_EQ(nodes[0].cards, 4u);
  EXPECT_EQ(nodes[0].card_type, "T4");
  EXPECT_EQ(nodes[0].card_mib, 16 * 1024);
  EXPECT_EQ(nodes[0].cpu_milli, 48'000);
  EXPECT_EQ(nodes[2].ram_mib, 61 * 1024);
  EXPECT_EQ(nodes[2].attributes.at("ecs.instance-type"), "p3.2xlarge");
  const auto unknown = parse_instances("2xg4dn.12xlrge", instances());
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().hint, "did you mean g4dn.12xlarge?");
}

TEST(Pool, EveryShippedInstanceHasCardsThatAreKnown) {
  std::set<std::string> known;
  for (const CardType& type : cards()) EXPECT_TRUE(known.insert(type.name).second) << type.name;
  const auto list = instances();
  EXPECT_GT(list.size(), 40u);
  for (const InstanceType& type : list) {
    EXPECT_TRUE(known.contains(type.card_type)) << type.name;
    EXPECT_GT(type.card_mib, 0) << type.name;
  }
  EXPECT_EQ(instances()[7].ram_mib, 31'232);  // 30.5 GiB
}

// The cloud's table of 2021, as it was published; ours adds to it and changes nothing.
TEST(Pool, ShippedInstancesAgreeWithThePublishedOnes) {
  const std::string ours = "\n" + shipped("instance-types.csv");
  std::istringstream published(text_of("tests/data/simulate/instance-types-2021.csv"));
  std::size_t rows = 0;
  for (std::string line; std::getline(published, line); ++rows)
    EXPECT_NE(ours.find("\n" + line + "\n"), std::string::npos) << line;
  EXPECT_EQ(rows, 18u) << "seventeen types and the names of the columns";
}

TEST(Pool, ATableWithAWrongNumberNamesItsLine) {
  const auto types = parse_instance_types(
      "name,gpus,gpu_type,gpu_memory_gib_total,vcpus,memory_gib\na,1,T4,16,4,16\nb,1,T4,16,-4,16\n",
      "t.csv");
  ASSERT_FALSE(types);
  EXPECT_TRUE(types.error().message.starts_with("t.csv:3: vcpus")) << types.error().message;
}

}  // namespace
}  // namespace mete::simulate
