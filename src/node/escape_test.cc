// SPDX-License-Identifier: Apache-2.0
// Memory outside a meter, on snapshots that a test builds: processes without a meter, with charges
// below or above what they hold, forged grant files, MPS, cards that were not granted. An escape is
// reported after two readings and certain after three; doubt is none. Every case is one card and a
// few processes.
#include "node/escape.h"

#include <gtest/gtest.h>

namespace mete::node {
namespace {

using core::JobId;
using State = MeterFacts::State;

constexpr std::uint64_t kContext = 518;  // MiB
const std::string kCard = "GPU-0";

Bytes mib(std::uint64_t count) { return Bytes::from_mib(count); }

// One card, and job 7 with 8 GiB of it unless a test says otherwise.
class EscapeTest : public testing::Test {
 protected:
  EscapeTest() {
    snapshot_.cards.resize(1);
    snapshot_.cards[0].uuid = kCard;
    snapshot_.cards[0].index = 3;
    snapshot_.cards[0].processes.emplace();
    jobs_ = {{JobId{7}, {{3, kCard, Bytes::from_gib(8), false}}}};
  }

  struct Process {
    seam::ProcessReading& reading;
    ProcessFacts& facts;
  };
  Process holds(pid_t pid, std::uint64_t used_mib, State state, std::uint64_t charged_mib = 0) {
    snapshot_.cards[0].processes->push_back({pid, mib(used_mib), false});
    ProcessFacts facts;
    facts.pid = pid;
    facts.start_ticks = 99;
    facts.comm = "python";
    facts.meter.state = state;
    if (state == State::kSlot) facts.meter.charges = {{kCard, mib(charged_mib)}};
    snapshot_.processes.push_back(facts);
    owners_[pid] = JobId{7};
    return {snapshot_.cards[0].processes->back(), snapshot_.processes.back()};
  }
  // Repeats a reading.
  std::vector<EscapeWatch::Seen> see(unsigned readings = 1) {
    std::vector<EscapeWatch::Seen> seen;
    for (unsigned i = 0; i < readings; ++i) {
      snapshot_.at += std::chrono::milliseconds(250);
      seen = watch_.see(snapshot_, owners_, jobs_);
    }
    return seen;
  }

  CardSnapshot snapshot_;
  std::map<pid_t, JobId> owners_;
  std::vector<EscapeJob> jobs_;
  EscapeWatch watch_;
};

TEST_F(EscapeTest, AProcessWithoutAMeterIsToldOfInTheSecondReadingAndCertainInTheThird) {
  holds(412, 3000, State::kNone);
  EXPECT_TRUE(see().empty());
  const std::vector<EscapeWatch::Seen> told = see();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0], (EscapeWatch::Seen{
                         JobId{7}, {412, 99, kCard, 3, mib(3000), Bytes(), "python"}, false}));
  EXPECT_TRUE(see()[0].certain);
}

TEST_F(EscapeTest, TheSameReadingOnceMoreIsNoNewOne) {
  holds(412, 3000, State::kNone);
  see(2);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(watch_.see(snapshot_, owners_, jobs_)[0].certain);
}

TEST_F(EscapeTest, AReadingWithoutItBeginsAnew) {
  holds(412, 3000, State::kNone);
  see(2);
  const CardSnapshot with = snapshot_;
  snapshot_.cards[0].processes->clear();
  EXPECT_TRUE(see().empty());
  const seam::Nanoseconds at = snapshot_.at;
  snapshot_ = with;
  snapshot_.at = at;
  EXPECT_TRUE(see().empty());
  EXPECT_FALSE(see()[0].certain);
}

TEST_F(EscapeTest, WhatAMeterHasChargedIsNoEscape) {
  holds(1, 6000, State::kSlot, 6100);
  // Memory that the driver takes unasked: code, stacks.
  holds(2, 1900, State::kSlot, 560);
  // In the act of freeing: the charge is gone a moment before the figure.
  holds(3, 60, State::kSlot, 0);
  EXPECT_TRUE(see(5).empty());
}

TEST_F(EscapeTest, MemoryBesideAMeterIsAnEscapeOnlyBeyondTheGrant) {
  const Process process = holds(1, 7600, State::kSlot, 1000);
  EXPECT_TRUE(see(4).empty()) << "the job's own sampler has booked it";
  process.reading.used = mib(9000);
  const std::vector<EscapeWatch::Seen> told = see(3);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].escape.bytes, mib(8000));
  EXPECT_EQ(told[0].escape.charged, mib(1000));
  EXPECT_TRUE(told[0].certain);
}

TEST_F(EscapeTest, ChargesBeyondTheGrantExcuseNothing) {
  holds(1, 20'000, State::kSlot, 1'000'000);
  const std::vector<EscapeWatch::Seen> told = see(3);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].escape.bytes, mib(20'000 - 8192 - 512));
  EXPECT_LE(told[0].escape.charged, Bytes::from_gib(8));
  EXPECT_TRUE(told[0].certain);
}

TEST_F(EscapeTest, ManyProcessesThatEachClaimAllOfTheGrantExcuseNothing) {
  for (pid_t pid = 1; pid <= 4; ++pid) holds(pid, 7000 + pid, State::kSlot, 8192);
  const std::vector<EscapeWatch::Seen> told = see(3);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].escape.pid, 4) << "the largest";
}

TEST_F(EscapeTest, AGrantFileThatCannotBeReadHidesNothingBeyondTheGrant) {
  const Process process = holds(1, 8000, State::kUnknown);
  EXPECT_TRUE(see(4).empty());
  process.reading.used = mib(9000);
  EXPECT_EQ(see(3).size(), 1u);
}

TEST_F(EscapeTest, ALittleIsNoEscape) {
  const Process process = holds(1, 163, State::kNone);  // 2 % of 8 GiB
  EXPECT_TRUE(see(4).empty());
  process.reading.used = mib(164);
  EXPECT_EQ(see(2).size(), 1u);
  jobs_[0].grant[0].bytes = mib(512);
  process.reading.used = mib(64);
  EXPECT_TRUE(see(4).empty());
  process.reading.used = mib(65);
  EXPECT_EQ(see(2).size(), 1u);
}

TEST_F(EscapeTest, ACardThatWasNotGrantedIsOutside) {
  holds(1, kContext + 100, State::kSlot, 0);
  jobs_[0].grant[0].uuid = "GPU-1";
  EXPECT_TRUE(see(3)[0].certain);
}

TEST_F(EscapeTest, WhatCannotBeToldIsNoEscape) {
  holds(1, 3000, State::kNone).facts.exiting = true;
  holds(2, 3000, State::kNone).facts.visible = false;
  holds(3, 3000, State::kNone).reading.used.reset();
  holds(4, 3000, State::kNone);
  owners_.erase(4);  // of a foreign process
  holds(5, 3000, State::kNone);
  owners_[5] = JobId{8};  // a job that is being parked, or ended
  holds(6, 3000, State::kNone);
  std::erase_if(snapshot_.processes, [](const ProcessFacts& facts) { return facts.pid == 6; });
  EXPECT_TRUE(see(5).empty());
}

TEST_F(EscapeTest, UnderMpsNothingIsCertain) {
  holds(1, 9000, State::kNone).reading.mps = true;
  const std::vector<EscapeWatch::Seen> told = see(6);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_FALSE(told[0].certain);
}

TEST_F(EscapeTest, TheServerOfMpsHoldsWhatIsItsClients) {
  holds(1, 7000, State::kNone).facts.comm = "nvidia-cuda-mps-server";
  EXPECT_TRUE(see(6).empty());
}

TEST_F(EscapeTest, ALostCardSaysNothing) {
  holds(1, 3000, State::kNone);
  snapshot_.cards[0].state = seam::CardState::kLost;
  EXPECT_TRUE(see(4).empty());
}

}  // namespace
}  // namespace mete::node
