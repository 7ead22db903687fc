// SPDX-License-Identifier: Apache-2.0
// NVML's readings against a grant in memory: excess, lent reserves, managed and inherited memory,
// escapes with and without a known part. A test changes charges between before_sample() and apply()
// as programs do while NVML is read. Forged words of the job must stay within bounds.
#include "node/reconcile.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>

#include "abi/park.h"
#include "abi/reserve.h"

namespace mete::node {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;

// One card, and this process as the only one of the job, with a charge of 100 MiB.
class ReconcileTest : public testing::Test {
 protected:
  ReconcileTest() : memory_(new unsigned char[sizeof(abi::Grant)]()) {
    abi::GrantCard cards[1] = {};
    abi::GrantSpec spec;
    spec.cards = cards;
    spec.card_count = 1;
    cards[0].ceiling_bytes = 1024 * kMiB;
    for (int i = 0; i < 16; ++i) cards[0].uuid[i] = static_cast<std::uint8_t>(i);
    EXPECT_TRUE(abi::init_grant(memory_.get(), spec));
    // The job's process is our parent: alive, and not us (the reconciler acts under our own pid).
    abi::ProcessStat stat;
    EXPECT_EQ(abi::read_stat(static_cast<std::uint32_t>(getppid()), &stat), abi::StatResult::kRead);
    abi::Self job = abi::read_self();
    job.pid = static_cast<std::uint32_t>(getppid());
    job.start = stat.start;
    job.stack = 0;
    slot_ = static_cast<std::uint32_t>(abi::claim_slot(grant(), job, 0));
    EXPECT_TRUE(abi::try_take({grant(), slot_}, {0, 0}, abi::units_for(100 * kMiB)));
  }
  abi::Grant& grant() { return *reinterpret_cast<abi::Grant*>(memory_.get()); }
  std::uint64_t excess() { return grant().accounts[0][0].excess_units.load() * abi::kUnitBytes; }

  static Sample sample(pid_t pid, std::uint64_t used) {
    Sample s;
    s.at = seam::Nanoseconds(77);
    CardSample card;
    seam::UuidBytes uuid;
    for (std::size_t i = 0; i < 16; ++i) uuid[i] = static_cast<std::uint8_t>(i);
    card.uuid_bytes = uuid;
    card.free = Bytes::from_gib(3);
    card.processes_known = true;
    s.cards.push_back(card);
    s.processes.push_back({pid, {Bytes::from_bytes(used)}, {true}});
    return s;
  }
  std::vector<Escape> look(Reconciler& r, pid_t pid, std::uint64_t used, std::set<pid_t> job = {}) {
    r.before_sample();
    return r.apply(sample(pid, used), job);
  }
  std::unique_ptr<unsigned char[]> memory_;
  std::uint32_t slot_ = 0;
};

TEST_F(ReconcileTest, PublishesTheCardsFreeMemory) {
  Reconciler r(grant());
  look(r, getppid(), kMiB);
  EXPECT_EQ(grant().header.cards[0].free_bytes, 3 * 1024 * kMiB);
  EXPECT_EQ(grant().header.cards[0].published_ns, 77u);
}

TEST_F(ReconcileTest, WhatTheDriverTookUnaskedIsChargedAfterTwoReadings) {
  Reconciler r(grant());
  look(r, getppid(), 300 * kMiB);
  EXPECT_EQ(excess(), 0u);
  look(r, getppid(), 300 * kMiB);
  EXPECT_EQ(excess(), 200 * kMiB + abi::kHeadroomBytes);
  look(r, getppid(), 50 * kMiB);
  EXPECT_EQ(excess(), 0u);
}

TEST_F(ReconcileTest, CountsThatTheJobHasForgedAreBounded) {
  grant().header.card_count = UINT32_MAX;
  grant().header.part_count = UINT32_MAX;
  Reconciler late(grant());  // started anew after it was forged
  look(late, getppid(), 300 * kMiB);
  grant().header.card_count = grant().header.part_count = 1;
  Reconciler r(grant());
  grant().header.card_count = grant().header.part_count = 1000;
  look(r, getppid(), 300 * kMiB);
  look(r, getppid(), 300 * kMiB);
  EXPECT_EQ(excess(), 200 * kMiB + abi::kHeadroomBytes);
}

TEST_F(ReconcileTest, ABlockFreedDuringTheReadingIsNoExcess) {
  Reconciler r(grant());
  for (int i = 0; i < 3; ++i) {
    r.before_sample();
    abi::give_back({grant(), slot_}, {0, 0}, abi::units_for(90 * kMiB));
    r.apply(sample(getppid(), 80 * kMiB), {});
    EXPECT_EQ(excess(), 0u);
    ASSERT_TRUE(abi::try_take({grant(), slot_}, {0, 0}, abi::units_for(90 * kMiB)));
  }
}

TEST_F(ReconcileTest, ManagedMemoryIsNotInNvmlsFigure) {
  Reconciler r(grant());
  grant().slots[slot_].cards[0].unseen_units = abi::units_for(60 * kMiB);
  look(r, getppid(), 80 * kMiB);
  look(r, getppid(), 80 * kMiB);
  EXPECT_EQ(excess(), 40 * kMiB + abi::kHeadroomBytes);
}

TEST_F(ReconcileTest, WhatIsInheritedFromADeadOwnerIsChargedOnce) {
  Reconciler r(grant());
  // A process that cannot exist: its slot is charged 500 MiB for memory that our parent has open.
  abi::Self dead = abi::read_self();
  dead.pid = 4194303;
  dead.stack = 0;
  const auto slot = static_cast<std::uint32_t>(abi::claim_slot(grant(), dead, 0));
  ASSERT_TRUE(abi::try_take({grant(), slot}, {0, 0}, abi::units_for(500 * kMiB)));
  ASSERT_GE(abi::add_export(grant(), slot, abi::owner_of(grant(), dead), 0,
                            abi::units_for(500 * kMiB), 9),
            0);
  ASSERT_GE(abi::open_export(grant(), slot_, 9), 0);
  look(r, getppid(), 580 * kMiB);
  look(r, getppid(), 580 * kMiB);
  EXPECT_EQ(excess(), 0u);
  EXPECT_EQ(abi::total_units(grant(), {0, 0}), abi::units_for(600 * kMiB));
}

TEST_F(ReconcileTest, AProcessThatStartsDuringTheReadingIsNoEscape) {
  Reconciler r(grant());
  r.before_sample();
  abi::Self late = abi::read_self();
  late.pid = static_cast<std::uint32_t>(getppid());
  late.start = 1;  // another life of that pid: a new slot
  late.stack = 0;
  grant().slots[slot_].owner = 0;
  ASSERT_GE(abi::claim_slot(grant(), late, 0), 0);
  EXPECT_TRUE(r.apply(sample(getppid(), 700 * kMiB), {getppid()}).empty());
  EXPECT_EQ(excess(), 0u);
}

TEST_F(ReconcileTest, AProcessOfTheJobWithoutAMeterIsReportedAndStopsGrowth) {
  Reconciler r(grant());
  EXPECT_TRUE(look(r, 999999, 700 * kMiB).empty());  // of another job
  EXPECT_EQ(excess(), 0u);
  const std::vector<Escape> escapes = look(r, 999999, 700 * kMiB, {999999});
  ASSERT_EQ(escapes.size(), 1u);
  EXPECT_EQ(escapes[0], (Escape{999999, 0, Bytes::from_mib(700)}));
  EXPECT_EQ(grant().header.escapes, 1u);
  EXPECT_FALSE(abi::try_take({grant(), slot_}, {0, 0}, abi::units_for(300 * kMiB)));
  EXPECT_TRUE(look(r, 999999, 0, {}).empty());
  EXPECT_TRUE(abi::try_take({grant(), slot_}, {0, 0}, abi::units_for(300 * kMiB)));
}

// A job with a context: 60 MiB of the charge are its reserve, 30 MiB the context.
class ReserveTest : public ReconcileTest {
 protected:
  ReserveTest() {
    grant().header.cards[0].context_first_bytes = 30 * kMiB;
    abi::open_reserve(words(), abi::units_for(abi::kReserveBytes));
  }
  abi::SlotCard& words() { return grant().slots[slot_].cards[0]; }
  std::uint64_t charge() { return abi::charged_units(grant(), slot_, 0) * abi::kUnitBytes; }
  std::uint64_t total() { return abi::total_units(grant(), {0, 0}) * abi::kUnitBytes; }
  void rest(Reconciler& r, std::uint64_t used, int readings = 12) {
    for (int i = 0; i < readings; ++i) look(r, getppid(), used);
  }
};

TEST_F(ReserveTest, WhatIsNotNeededOfItIsGivenBack) {
  Reconciler r(grant());
  rest(r, 50 * kMiB);
  EXPECT_EQ(charge(), 58 * kMiB);
  EXPECT_EQ(total(), 58 * kMiB);
  EXPECT_EQ(excess(), 0u);
  EXPECT_EQ(abi::close_reserve(words()), abi::units_for(18 * kMiB));
}

TEST_F(ReserveTest, AnotherSamplerGoesOnWhereTheFirstOneEnded) {
  {
    Reconciler r(grant());
    rest(r, 70 * kMiB);
    EXPECT_EQ(charge(), 78 * kMiB);
  }
  Reconciler next(grant());
  rest(next, 30 * kMiB);
  EXPECT_EQ(charge(), 40 * kMiB) << "no more than there was";
  EXPECT_EQ(abi::close_reserve(words()), 0u);
}

TEST_F(ReserveTest, WhatTheDriverTakesLaterIsCharged) {
  Reconciler r(grant());
  rest(r, 50 * kMiB);
  rest(r, 90 * kMiB, 2);
  EXPECT_EQ(charge() + excess(), 98 * kMiB);
  rest(r, 50 * kMiB);
  EXPECT_EQ(charge() + excess(), 58 * kMiB);
}

TEST_F(ReserveTest, NothingIsGivenBackWhileTheFiguresMayMeanSomethingElse) {
  const auto keeps = [&](const char* why) {
    Reconciler r(grant());
    rest(r, 50 * kMiB);
    EXPECT_EQ(charge(), 100 * kMiB) << why;
  };
  words().pending.fetch_add(1);
  keeps("a call is inside the driver");
  words().pending.fetch_sub(1);
  grant().header.park_order = abi::ParkOrder{1, abi::ParkOrder::kMove}.pack();
  keeps("it is being parked");
  grant().header.park_order = 0;
  grant().header.cards[0].context_first_bytes = 59 * kMiB;
  keeps("less than a context: the figure is not its own");
  grant().header.cards[0].context_first_bytes = 30 * kMiB;
  ASSERT_GE(abi::add_export(grant(), slot_, grant().slots[slot_].owner, 0, 16, 9), 0);
  keeps("others may hold memory of it");
  grant().exports[0].state = 0;
  (void)abi::close_reserve(words());
  keeps("it keeps its reserve");
}

// Two parts of 512 MiB each. The escaped processes are real ones: their environment is read.
class ReconcileParts : public ReconcileTest {
 protected:
  ReconcileParts() {
    std::memset(memory_.get(), 0, sizeof(abi::Grant));
    abi::GrantCard cards[1] = {};
    abi::GrantSpec spec;
    spec.cards = cards;
    spec.card_count = 1;
    spec.part_count = 2;
    cards[0].ceiling_bytes = 1024 * kMiB;
    for (int i = 0; i < 16; ++i) cards[0].uuid[i] = static_cast<std::uint8_t>(i);
    EXPECT_TRUE(abi::init_grant(memory_.get(), spec));
  }
  ~ReconcileParts() override {
    if (child_ <= 0) return;
    (void)kill(child_, SIGKILL);
    (void)waitpid(child_, nullptr, 0);
  }
  // Starts a program that does nothing, with this environment; returns when it runs.
  pid_t start(const char* variable) {
    int ready[2];
    EXPECT_EQ(pipe2(ready, O_CLOEXEC), 0);
    child_ = fork();
    if (child_ == 0) {
      char name[] = "sleep";
      char time[] = "60";
      char* argv[] = {name, time, nullptr};
      std::string text = variable;
      char* environment[] = {text.data(), nullptr};
      execve("/bin/sleep", argv, environment);
      _exit(127);
    }
    close(ready[1]);
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 0);  // closed by the exec
    close(ready[0]);
    return child_;
  }
  std::uint64_t escaped(std::uint32_t part) {
    return grant().accounts[part][0].escaped_units.load() * abi::kUnitBytes;
  }
  pid_t child_ = -1;
};

TEST_F(ReconcileParts, AnEscapeIsBookedOnThePartThatItsEnvironmentNames) {
  Reconciler r(grant());
  const pid_t pid = start("METE_PART=1");
  ASSERT_EQ(look(r, pid, 100 * kMiB, {pid}).size(), 1u);
  EXPECT_EQ(escaped(0), 0u);
  EXPECT_EQ(escaped(1), 100 * kMiB);
  look(r, pid, 0, {});
  EXPECT_EQ(escaped(1), 0u);
}

TEST_F(ReconcileParts, AnEscapeThatNobodyCanPlaceIsBookedOnAllInEvenShares) {
  for (const char* variable : {"OTHER=1", "METE_PART=2", "METE_PART=x", "METE_PARTS=1"}) {
    Reconciler r(grant());
    const pid_t pid = start(variable);
    ASSERT_EQ(look(r, pid, 101 * kMiB, {pid}).size(), 1u);
    EXPECT_EQ(escaped(0), 50 * kMiB + kMiB / 2) << variable;
    EXPECT_EQ(escaped(1), escaped(0)) << variable;
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, nullptr, 0);
    child_ = -1;
  }
}

}  // namespace
}  // namespace mete::node
