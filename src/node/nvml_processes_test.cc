// SPDX-License-Identifier: Apache-2.0
#include "node/nvml_processes.h"

#include <gtest/gtest.h>

namespace mete::node {
namespace {

using seam::ProcessReading;

TEST(MergeProcesses, APidInTwoListsHoldsItsMemoryOnce) {
  std::vector<ProcessReading> all = {{30, Bytes::from_mib(518), false},
                                     {10, Bytes::from_mib(100), false}};
  merge_processes(all, {{30, Bytes::from_mib(520), false}, {20, std::nullopt, false}});
  EXPECT_EQ(all, (std::vector<ProcessReading>{{10, Bytes::from_mib(100), false},
                                              {20, std::nullopt, false},
                                              {30, Bytes::from_mib(520), false}}));
}

TEST(MergeProcesses, AKnownFigureBeatsAnUnknownOne) {
  std::vector<ProcessReading> all = {{7, std::nullopt, false}};
  merge_processes(all, {{7, Bytes::from_mib(3), true}});
  EXPECT_EQ(all, (std::vector<ProcessReading>{{7, Bytes::from_mib(3), true}}));
  merge_processes(all, {{7, std::nullopt, false}});
  EXPECT_EQ(all, (std::vector<ProcessReading>{{7, Bytes::from_mib(3), true}}));
}

// A card with processes 10, 20 and 30, of which 30 is a client of MPS.
seam::CardReading card_at(std::optional<unsigned> utilisation_pct) {
  seam::CardReading card;
  card.utilisation_pct = utilisation_pct;
  card.processes = {{10, std::nullopt, false}, {20, std::nullopt, false}, {30, std::nullopt, true}};
  return card;
}
std::vector<std::optional<unsigned>> loads(const std::vector<BusyProcess>& busy,
                                           std::optional<unsigned> utilisation_pct) {
  seam::CardReading card = card_at(utilisation_pct);
  add_utilisation(busy, card);
  std::vector<std::optional<unsigned>> loads;
  for (const ProcessReading& process : *card.processes) loads.push_back(process.utilisation_pct);
  return loads;
}
using Loads = std::vector<std::optional<unsigned>>;
constexpr std::optional<unsigned> kUnknown;

TEST(Utilisation, WhoIsNotSampledDidNothing) {
  EXPECT_EQ(loads({}, 0), (Loads{0, 0, kUnknown}));
  EXPECT_EQ(loads({}, std::nullopt), (Loads{0, 0, kUnknown}));
  EXPECT_EQ(loads({{20, 35}}, 35), (Loads{0, 35, kUnknown}));
}

TEST(Utilisation, OfSeveralSamplesTheHighestCounts) {
  EXPECT_EQ(loads({{20, 35}, {20, 0}, {20, 80}, {20, 2}}, 35), (Loads{0, 80, kUnknown}));
}

// The card works, and no listed process does: the work could belong to any of them.
TEST(Utilisation, WorkThatIsNobodysMakesEverybodyUnknown) {
  EXPECT_EQ(loads({}, 50), (Loads{kUnknown, kUnknown, kUnknown}));
  EXPECT_EQ(loads({{777, 40}}, std::nullopt), (Loads{kUnknown, kUnknown, kUnknown}));
  EXPECT_EQ(loads({{777, 40}, {20, 0}}, 40), (Loads{kUnknown, 0, kUnknown}));
  EXPECT_EQ(loads({{777, 40}, {20, 5}}, 45), (Loads{0, 5, kUnknown})) << "777 has just ended";
  EXPECT_EQ(loads({{777, 0}}, 0), (Loads{0, 0, kUnknown}));
}

// NVML counts the work of MPS clients to the server.
TEST(Utilisation, OfClientsOfMpsNothingIsKnown) {
  EXPECT_EQ(loads({{30, 0}, {10, 4}}, 4), (Loads{4, 0, kUnknown}));
}

TEST(Utilisation, WithoutAListThereIsNobody) {
  seam::CardReading card;
  add_utilisation({{10, 50}}, card);
  EXPECT_FALSE(card.processes);
}

}  // namespace
}  // namespace mete::node
