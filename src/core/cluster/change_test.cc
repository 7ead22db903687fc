// SPDX-License-Identifier: Apache-2.0
// Changes that would place a request. First on small clusters, where the smallest change is known
// for each aspect; then on random ones, where each change must fit, and one unit more of what was
// cut must not.
#include "core/cluster/change.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/cluster/chance.h"
#include "core/cluster/policy.h"

namespace mete::core::cluster {
namespace {

NodeSpec node(const std::string& name, std::uint32_t cards, const std::string& type = "T4") {
  return {.name = name,
          .cpu_milli = 16000,
          .ram_mib = 65536,
          .cards = cards,
          .card_type = type,
          .card_mib = type == "T4" ? 16000 : 80000,
          .places = {},
          .attributes = {}};
}

class ChangeTest : public testing::Test {
 protected:
  void build(std::vector<NodeSpec> nodes) { cluster_.emplace(*Cluster::make(std::move(nodes))); }
  KindId kind(Ask ask) { return *cluster_->kind_of(std::move(ask)); }
  void take(Ask ask) {
    const KindId what = kind(std::move(ask));
    const std::optional<Spot> spot = make_first_fit()->choose(*cluster_, what);
    ASSERT_TRUE(spot);
    cluster_->take(what, *spot);
  }
  std::vector<Change> changes_of(Ask ask) { return changes(*cluster_, kind(std::move(ask))); }
  std::optional<Cluster> cluster_;
};

TEST_F(ChangeTest, NothingIsToldToWhoeverHasAPlace) {
  build({node("a", 1)});
  EXPECT_TRUE(changes_of({.cards = 1, .share = 1000}).empty());
}

TEST_F(ChangeTest, TheSmallestCutOfEachAspectAlone) {
  build({node("a", 2), node("b", 4)});
  take({.cards = 2, .share = 700});
  take({.cards = 2, .share = 900});
  // a has 300 and 300, b two whole cards and 100 on two.
  const std::vector<Change> list = changes_of({.cpu_milli = 1000, .cards = 2, .share = 1000});
  EXPECT_TRUE(list.empty());  // b has two
  const std::vector<Change> three = changes_of({.cpu_milli = 1000, .cards = 3, .share = 500});
  ASSERT_EQ(three.size(), 2u);
  EXPECT_EQ(three[0].aspects, std::vector{Aspect::kCards});
  EXPECT_EQ(three[0].ask.cards, 2u);
  EXPECT_EQ(three[1].aspects, std::vector{Aspect::kShare});
  EXPECT_EQ(three[1].ask.share, 100);
}

TEST_F(ChangeTest, CpuIsCutToWhatIsLeftBesideTheCards) {
  build({node("a", 1), node("b", 1)});
  take({.cpu_milli = 10'000});
  take({.cpu_milli = 12'000});
  const std::vector<Change> list = changes_of({.cpu_milli = 8000, .cards = 1, .share = 1000});
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].aspects, std::vector{Aspect::kCpu});
  EXPECT_EQ(list[0].ask.cpu_milli, 6000);
  EXPECT_EQ(list[0].loss, 250'000);
}

TEST_F(ChangeTest, AnotherTypeGivesNothingUpAndComesFirst) {
  build({node("a", 1, "T4"), node("b", 1, "A100")});
  take({.cards = 1, .share = 500, .types = {"T4"}});
  const std::vector<Change> list = changes_of({.cards = 1, .share = 800, .types = {"T4"}});
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].aspects, std::vector{Aspect::kType});
  EXPECT_EQ(list[0].ask.types, std::vector<std::string>{"A100"});
  EXPECT_EQ(list[1].ask.share, 500);
}

TEST_F(ChangeTest, BytesAreCutToWhatTheCardHasLeft) {
  build({node("a", 1), node("b", 1, "A100")});
  take({.cards = 1, .share = 1000, .types = {"T4"}});
  take({.cards = 1, .share = 600, .types = {"A100"}});
  const std::vector<Change> list = changes_of({.cards = 1, .share_mib = 40'000});
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].ask.share_mib, 32'000);
}

TEST_F(ChangeTest, SeveralAspectsOnlyWhereNoneIsEnoughAlone) {
  build({node("a", 1)});
  take({.cpu_milli = 15'000, .cards = 1, .share = 400});
  const std::vector<Change> list = changes_of({.cpu_milli = 4000, .cards = 1, .share = 1000});
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].aspects, (std::vector{Aspect::kCpu, Aspect::kShare}));
  EXPECT_EQ(list[0].ask.cpu_milli, 1000);
  EXPECT_EQ(list[0].ask.share, 600);
}

TEST_F(ChangeTest, FewerCardsAndLessOfThemWhereThereIsNothingElse) {
  build({node("a", 2)});
  take({.cards = 1, .share = 400});
  take({.cards = 1, .share = 1000});
  const std::vector<Change> list = changes_of({.cards = 2, .share = 1000});
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].aspects, (std::vector{Aspect::kShare, Aspect::kCards}));
  EXPECT_EQ(list[0].ask.cards, 1u);
  EXPECT_EQ(list[0].ask.share, 600);
}

TEST_F(ChangeTest, AFullClusterOffersNothing) {
  build({node("a", 1)});
  take({.cards = 1, .share = 1000});
  EXPECT_TRUE(changes_of({.cards = 1, .share = 1}).empty());
}

// With one more of what was cut there must be no room: otherwise the change is not the smallest.
std::optional<Ask> one_more(const Change& change) {
  Ask ask = change.ask;
  switch (change.aspects.front()) {
    case Aspect::kCpu:
      ++ask.cpu_milli;
      return ask;
    case Aspect::kRam:
      ++ask.ram_mib;
      return ask;
    case Aspect::kShare:
      if (ask.share_mib > 0)
        ++ask.share_mib;
      else
        ++ask.share;
      return ask;
    case Aspect::kCards:
      ++ask.cards;
      return ask;
    case Aspect::kType:
      return std::nullopt;
  }
  return std::nullopt;
}

TEST(ChangeProperty, EveryChangeFitsAndOfItsKindNoSmallerOneDoes) {
  std::size_t told = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Chance chance(seed);
    std::vector<NodeSpec> nodes;
    for (int i = 0; i < 6; ++i)
      nodes.push_back(node("n" + std::to_string(i), static_cast<std::uint32_t>(chance.below(5)),
                           chance.below(2) == 0 ? "T4" : "A100"));
    Cluster cluster = *Cluster::make(std::move(nodes));
    const std::unique_ptr<NodePolicy> policy = make_best_fit();
    for (int i = 0; i < 60; ++i) {
      Ask ask;
      ask.cpu_milli = static_cast<std::int32_t>(chance.below(9000));
      ask.ram_mib = static_cast<std::int32_t>(chance.below(30'000));
      ask.cards = static_cast<std::uint32_t>(chance.below(4));
      if (chance.below(3) == 0)
        ask.share_mib = static_cast<std::int64_t>(1 + chance.below(30'000));
      else
        ask.share =
            chance.below(2) == 0 ? kWholeCard : static_cast<std::int32_t>(1 + chance.below(999));
      if (chance.below(3) == 0) ask.types = {chance.below(2) == 0 ? "T4" : "A100"};
      const KindId kind = *cluster.kind_of(ask);
      if (const std::optional<Spot> spot = policy->choose(cluster, kind)) {
        cluster.take(kind, *spot);
        EXPECT_TRUE(changes(cluster, kind).empty() || !policy->choose(cluster, kind));
        continue;
      }
      for (const Change& change : changes(cluster, kind)) {
        ++told;
        EXPECT_TRUE(policy->choose(cluster, *cluster.kind_of(change.ask)));
        if (change.aspects.size() > 1) continue;
        if (const std::optional<Ask> more = one_more(change)) {
          EXPECT_FALSE(policy->choose(cluster, *cluster.kind_of(*more)));
        }
      }
    }
  }
  EXPECT_GT(told, 1000u);
}

}  // namespace
}  // namespace mete::core::cluster
