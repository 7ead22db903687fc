// SPDX-License-Identifier: Apache-2.0
// What look_at() makes of a snapshot of one card: its capacity or why it is left out, the processes
// and peaks of jobs, movers, and claims of other daemons. Each test changes a field of the snapshot
// or of the other inputs and looks again.
#include "daemon/machine.h"

#include <gtest/gtest.h>

namespace mete::daemon {
namespace {

constexpr char kCard[] = "GPU-00000000-0000-0000-0000-000000000001";
const core::JobId kJob{12};

Bytes gib(std::uint64_t count) { return Bytes::from_gib(count); }

// One card of 80 GiB, of which the driver keeps 1; job 12 has runner 100, its only process there.
class MachineTest : public testing::Test {
 protected:
  MachineTest() {
    seam::CardReading& card = snapshot_.cards.emplace_back();
    card.uuid = kCard;
    card.name = "NVIDIA H200";
    card.type = "H200";
    card.total = gib(80);
    card.reserved = gib(1);
    card.used = Bytes();
    card.processes.emplace();
    snapshot_.driver.version = "580";
    lives(100, 1, "python");
    inputs_.snapshot = &snapshot_;
    inputs_.jobs = {{kJob, core::ProcessRef{100, 1100}, 1000, {}, {kCard}}};
  }
  node::ProcessFacts& lives(pid_t pid, pid_t parent, const std::string& comm) {
    node::ProcessFacts facts;
    facts.pid = pid;
    facts.parent = parent;
    facts.start_ticks = 1000 + static_cast<std::uint64_t>(pid);
    facts.uid = 1000;
    facts.user = "alice";
    facts.comm = comm;
    return snapshot_.processes.emplace_back(facts);
  }
  void holds(pid_t pid, std::optional<Bytes> used, std::optional<unsigned> busy = std::nullopt) {
    seam::ProcessReading& process = card().processes->emplace_back();
    process.pid = pid;
    process.used = used;
    process.utilisation_pct = busy;
    *card().used += used.value_or(Bytes());
  }
  seam::CardReading& card() { return snapshot_.cards[0]; }
  MachineSeen look() { return look_at(inputs_, {}); }

  node::CardSnapshot snapshot_;
  MachineInputs inputs_;
};

TEST_F(MachineTest, WithoutAReadingOnlyTheTroubleIsKnown) {
  inputs_.snapshot = nullptr;
  inputs_.trouble = "the driver hangs";
  inputs_.unread = Error::busy("the driver hangs");
  inputs_.capacities = {{kCard, gib(79)}};
  const MachineSeen seen = look();
  EXPECT_TRUE(seen.machine.pool.cards.empty());
  EXPECT_EQ(seen.machine.trouble, "the driver hangs");
  EXPECT_EQ(seen.machine.unread, inputs_.unread);
  EXPECT_EQ(seen.capacities, inputs_.capacities);
}

TEST_F(MachineTest, ACardIsWhatIsLeftOfIt) {
  inputs_.reserve = gib(2);
  const MachineSeen seen = look();
  ASSERT_EQ(seen.machine.pool.cards.size(), 1u);
  const core::PoolCard& pool = seen.machine.pool.cards[0];
  EXPECT_EQ(pool.card, (core::Card{0, kCard, "H200", gib(77), gib(80), "NVIDIA H200"}));
  EXPECT_TRUE(seen.machine.cards.at(kCard).sized);
  EXPECT_EQ(seen.capacities.at(kCard), gib(79)) << "as the driver says it";
  EXPECT_EQ(seen.machine.driver, "580");
}

TEST_F(MachineTest, ALostCardKeepsTheCapacityThatItHad) {
  card().state = seam::CardState::kLost;
  card().total = card().reserved = card().used = std::nullopt;
  card().processes.reset();
  inputs_.capacities = {{kCard, gib(79)}};
  const MachineSeen seen = look();
  EXPECT_TRUE(seen.machine.pool.cards[0].lost);
  EXPECT_EQ(seen.machine.pool.cards[0].card.capacity, gib(79));
  EXPECT_FALSE(seen.machine.cards.at(kCard).sized) << "it does not say it now";
}

TEST_F(MachineTest, WhyACardIsLeftOut) {
  card().mig = true;
  EXPECT_EQ(look().machine.pool.cards[0].unusable, "it is split into MIG slices");
  card().mig = false;
  card().compute_mode = seam::ComputeMode::kProhibited;
  EXPECT_EQ(look().machine.pool.cards[0].unusable, "its compute mode is prohibited");
  card().compute_mode = seam::ComputeMode::kExclusiveProcess;
  EXPECT_EQ(look().machine.pool.cards[0].unusable, "");
  EXPECT_TRUE(look().machine.pool.cards[0].one_process);
  inputs_.granted_here = [](const seam::CardReading&) { return false; };
  EXPECT_EQ(look().machine.pool.cards[0].unusable, "the configuration leaves it out");
}

TEST_F(MachineTest, AJobsProcessesAreItsOwn) {
  lives(101, 100, "worker");
  holds(100, gib(8), 40);
  holds(101, gib(2), 0);
  lives(900, 1, "intruder").user = "bob";
  holds(900, gib(3));
  const MachineSeen seen = look();
  EXPECT_EQ(seen.machine.used.at(kJob).at(kCard), gib(10));
  ASSERT_EQ(seen.machine.processes.at(kJob).size(), 2u);
  EXPECT_EQ(seen.machine.processes.at(kJob)[1].parent, 100);
  EXPECT_EQ(seen.loads.at(kJob), (std::vector<std::optional<unsigned>>{40, 0}));
  ASSERT_EQ(seen.machine.pool.cards[0].foreign.size(), 1u);
  EXPECT_EQ(seen.machine.pool.cards[0].foreign[0].bytes, gib(3));
  EXPECT_EQ(seen.machine.cards.at(kCard).strangers[0].user, "bob");
}

TEST_F(MachineTest, ACardThatAJobDoesNotUseIsKnownToBeUnused) {
  constexpr char kSecond[] = "GPU-00000000-0000-0000-0000-000000000002";
  seam::CardReading second = card();
  second.uuid = kSecond;
  second.index = 1;
  snapshot_.cards.push_back(second);
  inputs_.jobs[0].cards = {kCard, kSecond};
  holds(100, gib(8));
  EXPECT_EQ(look().machine.used.at(kJob).at(kSecond), Bytes());
  snapshot_.cards[1].processes.reset();
  EXPECT_FALSE(look().machine.used.at(kJob).contains(kSecond)) << "the driver does not tell";
}

TEST_F(MachineTest, AJobWithoutAProcessOnItsCardsIsKnownToDoNothingThere) {
  ASSERT_TRUE(look().loads.contains(kJob));
  EXPECT_TRUE(look().loads.at(kJob).empty());
  *card().used = gib(8);
  EXPECT_FALSE(look().loads.contains(kJob)) << "the driver does not list whose memory that is";
  *card().used = Bytes();
  holds(900, gib(1));
  lives(900, 1, "intruder").user = "bob";
  EXPECT_TRUE(look().loads.contains(kJob));
  card().processes->front().mps = true;
  EXPECT_FALSE(look().loads.contains(kJob)) << "it may work behind the server";
  card().processes->front().mps = false;
  card().state = seam::CardState::kLost;
  EXPECT_FALSE(look().loads.contains(kJob));
  card().state = seam::CardState::kOk;
  card().processes.reset();
  EXPECT_FALSE(look().loads.contains(kJob)) << "the driver lists no processes";
}

TEST_F(MachineTest, APeakIsNeverMoreThanTheCard) {
  snapshot_.processes[0].meter.state = node::MeterFacts::State::kSlot;
  snapshot_.processes[0].meter.charges = {{kCard, gib(8), gib(500)}};
  holds(100, gib(8));
  EXPECT_EQ(look().machine.peaks.at(kJob).at(kCard), gib(80));
}

TEST_F(MachineTest, OurMoverIsNeitherAJobNorForeign) {
  inputs_.parking = true;
  inputs_.arena = gib(32);
  inputs_.contexts = {{kCard, Bytes::from_mib(580)}};
  // A mover's context, 128 MiB of copy buffers, and 1/32 of the arena.
  const Bytes cost = Bytes::from_mib(580 + 128) + gib(1);
  EXPECT_EQ(look().machine.pool.cards[0].mover, cost) << "before there is one";
  EXPECT_FALSE(look().machine.pool.cards[0].mover_runs);
  inputs_.movers = {{kCard, 700}};
  lives(700, 1, "mete-mover");
  holds(700, Bytes::from_mib(700));
  *card().used += Bytes::from_mib(900);  // tables of the arena, charged to no process
  const MachineSeen seen = look();
  EXPECT_TRUE(seen.machine.pool.cards[0].mover_runs);
  EXPECT_EQ(seen.machine.pool.cards[0].mover, cost);
  EXPECT_TRUE(seen.machine.pool.cards[0].foreign.empty());
}

TEST_F(MachineTest, ClaimsOfOtherDaemonsAreShown) {
  node::OtherClaim other;
  other.user = "bob";
  other.claim.uuid = kCard;
  other.claim.bytes = gib(20);
  inputs_.claims = {other};
  const MachineSeen seen = look();
  ASSERT_EQ(seen.machine.pool.cards[0].claimed.size(), 1u);
  EXPECT_EQ(seen.machine.pool.cards[0].claimed[0].who, "bob's mete");
  EXPECT_EQ(seen.machine.pool.cards[0].claimed[0].bytes, gib(20));
}

}  // namespace
}  // namespace mete::daemon
