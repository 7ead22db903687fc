// SPDX-License-Identifier: Apache-2.0
// The words of a grant file, changed by one process and by many. Most tests use a grant in shared
// memory, with forked processes that take, give back, exec and are killed at random; the limit must
// hold, and the sums must add up afterwards. Leases need a real file and have a fixture of their
// own.
#include "abi/account.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cstring>
#include <random>
#include <vector>

#include "abi/process.h"
#include "abi/reserve.h"

namespace mete::abi {
namespace {

constexpr uint64_t kMiB = 1024 * 1024;

// A grant in memory that forked children share.
class GrantTest : public testing::Test {
 protected:
  GrantTest() {
    memory_ =
        mmap(nullptr, sizeof(Grant), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    make(1, 1, 64 * kMiB);
  }
  ~GrantTest() override { munmap(memory_, sizeof(Grant)); }

  void make(uint32_t cards, uint32_t parts, uint64_t limit) {
    memset(memory_, 0, sizeof(Grant));
    GrantCard cards_of_job[kMaxCards] = {};
    GrantSpec spec;
    spec.job = "7";
    spec.cards = cards_of_job;
    spec.card_count = cards;
    spec.part_count = parts;
    for (uint32_t c = 0; c < cards; ++c) cards_of_job[c].ceiling_bytes = limit;
    ASSERT_TRUE(init_grant(memory_, spec));
  }
  Grant& grant() { return *static_cast<Grant*>(memory_); }
  Actor actor(uint32_t slot) { return {grant(), slot}; }
  uint64_t sum(AccountId id) {
    settled_total(grant(), id);
    uint64_t units = 0;
    for (uint32_t s = 0; s < kSlots; ++s)
      if (grant().slots[s].part == id.part) units += charged_units(grant(), s, id.card);
    return units;
  }
  void* memory_;
};

TEST_F(GrantTest, TakesUpToTheLastByteAndNotOneUnitMore) {
  EXPECT_TRUE(try_take(actor(0), {0, 0}, units_for(64 * kMiB)));
  EXPECT_FALSE(try_take(actor(1), {0, 0}, 1));
  give_back(actor(0), {0, 0}, 1);
  EXPECT_TRUE(try_take(actor(1), {0, 0}, 1));
  EXPECT_EQ(total_units(grant(), {0, 0}), units_for(64 * kMiB));
  EXPECT_EQ(sum({0, 0}), total_units(grant(), {0, 0}));
}

TEST_F(GrantTest, LimitIsExactToTheByteBelowAUnit) {
  make(1, 1, 3 * kUnitBytes + 1);
  EXPECT_TRUE(try_take(actor(0), {0, 0}, 3));
  EXPECT_FALSE(try_take(actor(0), {0, 0}, 1));
}

TEST_F(GrantTest, LoweringTheLimitOnlyStopsGrowth) {
  ASSERT_TRUE(try_take(actor(0), {0, 0}, 100));
  account(grant(), {0, 0}).limit_bytes = 50 * kUnitBytes;
  EXPECT_FALSE(try_take(actor(0), {0, 0}, 1));
  give_back(actor(0), {0, 0}, 60);
  EXPECT_TRUE(try_take(actor(0), {0, 0}, 10));
  EXPECT_FALSE(try_take(actor(0), {0, 0}, 1));
}

TEST_F(GrantTest, SettingTheLimitSaysTheMostThatThereWillBe) {
  ASSERT_TRUE(try_take(actor(0), {0, 0}, 100));
  EXPECT_EQ(set_limit(actor(1), {0, 0}, 200 * kUnitBytes), 200 * kUnitBytes);
  EXPECT_EQ(set_limit(actor(1), {0, 0}, 50 * kUnitBytes), 100 * kUnitBytes);
  EXPECT_FALSE(try_take(actor(0), {0, 0}, 1));
  account(grant(), {0, 0}).excess_units = 7;
  EXPECT_EQ(set_limit(actor(1), {0, 0}, 50 * kUnitBytes), 107 * kUnitBytes);
  give_back(actor(0), {0, 0}, 60);
  EXPECT_EQ(set_limit(actor(1), {0, 0}, 50 * kUnitBytes), 50 * kUnitBytes);
  EXPECT_TRUE(try_take(actor(0), {0, 0}, 3));
  EXPECT_FALSE(try_take(actor(0), {0, 0}, 1));
  EXPECT_EQ(sum({0, 0}), total_units(grant(), {0, 0}));
}

// Processes take and give back all the time while the limit goes up and down.
TEST_F(GrantTest, NobodyGetsPastALimitThatMoves) {
  make(1, 1, 1000 * kUnitBytes);
  auto* stop = static_cast<Word*>(
      mmap(nullptr, sizeof(Word), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::vector<pid_t> children;
  for (uint32_t slot = 1; slot <= 4; ++slot) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    while (stop->load() == 0)
      if (try_take(actor(slot), {0, 0}, 3)) give_back(actor(slot), {0, 0}, 3);
    _exit(0);
  }
  std::mt19937 dice(7);
  for (int i = 0; i < 20000; ++i) {
    // Below what they hold or above: they hold 12 units at most.
    const uint64_t most = set_limit(actor(0), {0, 0}, dice() % 14 * kUnitBytes);
    for (int look = 0; look < 3; ++look)
      ASSERT_LE(total_units(grant(), {0, 0}) * kUnitBytes, most) << i;
  }
  stop->store(1);
  for (const pid_t child : children) ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(total_units(grant(), {0, 0}), 0u);
  EXPECT_EQ(sum({0, 0}), 0u);
  munmap(stop, sizeof(Word));
}

TEST_F(GrantTest, AGrowingAccountBeginsAtItsGuarantee) {
  memset(memory_, 0, sizeof(Grant));
  GrantCard cards_of_job[1] = {};
  GrantSpec spec;
  spec.cards = cards_of_job;
  spec.card_count = 1;
  spec.growing = true;
  cards_of_job[0].guarantee_bytes = 8 * kMiB;
  cards_of_job[0].ceiling_bytes = 20 * kMiB;
  ASSERT_TRUE(init_grant(memory_, spec));
  EXPECT_EQ(check_grant(memory_, sizeof(Grant)), GrantCheck::kOk);
  EXPECT_EQ(grant().header.features, kGrowing);
  EXPECT_EQ(grant().header.cards[0].ceiling_bytes, 20 * kMiB);
  EXPECT_TRUE(try_take(actor(0), {0, 0}, units_for(8 * kMiB)));
  EXPECT_FALSE(try_take(actor(0), {0, 0}, 1));
  spec.part_count = 2;
  EXPECT_FALSE(init_grant(memory_, spec));
}

TEST_F(GrantTest, ExcessSeenByNvmlStopsGrowth) {
  account(grant(), {0, 0}).excess_units = units_for(63 * kMiB);
  EXPECT_TRUE(try_take(actor(0), {0, 0}, units_for(kMiB)));
  EXPECT_FALSE(try_take(actor(0), {0, 0}, 1));
}

TEST_F(GrantTest, GivingBackMoreThanChargedEndsAtZero) {
  ASSERT_TRUE(try_take(actor(0), {0, 0}, 3));
  ASSERT_TRUE(try_take(actor(1), {0, 0}, 5));
  give_back(actor(0), {0, 0}, 9);
  EXPECT_EQ(total_units(grant(), {0, 0}), 5u);
  EXPECT_EQ(sum({0, 0}), 5u);
}

TEST_F(GrantTest, PartsHaveBudgetsOfTheirOwn) {
  make(2, 4, 64 * kMiB);
  grant().slots[1].part = 3;
  EXPECT_TRUE(try_take(actor(0), {0, 1}, units_for(16 * kMiB)));
  EXPECT_FALSE(try_take(actor(0), {0, 1}, 1));
  EXPECT_TRUE(try_take(actor(1), {3, 1}, units_for(16 * kMiB)));
  EXPECT_FALSE(try_take(actor(1), {3, 1}, 1));
}

// A launcher gives back for the dead of several parts with one slot and one intent word per card.
// Without the rule in next_seq its intent for one part could be taken for the half-done change of
// another.
TEST_F(GrantTest, OneActorMayChangeSeveralPartsOfACard) {
  make(1, 2, 256 * kMiB);
  grant().slots[1].part = 0;
  grant().slots[2].part = 1;
  const Actor launcher = actor(1000);
  for (int round = 0; round < 50; ++round) {
    ASSERT_TRUE(try_take(actor(1), {0, 0}, 7));
    ASSERT_TRUE(try_take(actor(2), {1, 0}, 5));
    grant().slots[1].owner = 11;
    grant().slots[2].owner = 22;
    lower_for_dead(launcher, 1, 11, {0, 0}, 0);
    lower_for_dead(launcher, 2, 22, {1, 0}, 0);
    ASSERT_EQ(sum({0, 0}), total_units(grant(), {0, 0}));
    ASSERT_EQ(sum({1, 0}), total_units(grant(), {1, 0}));
    ASSERT_EQ(total_units(grant(), {0, 0}), 0u);
    ASSERT_EQ(total_units(grant(), {1, 0}), 0u);
  }
}

TEST_F(GrantTest, SequenceNumbersWrapWithoutConfusion) {
  grant().accounts[0][0].total = TotalWord{0, 0, kSeqMask - 3}.pack();
  intent_word(grant(), 0, 0) = IntentWord{0, 0, kSeqMask - 3}.pack();
  charge_word(grant(), 0, 0) = ChargeWord{0, kSeqMask - 3}.pack();
  charge_word(grant(), 1, 0) =
      ChargeWord{0, 1}.pack();  // a charge that carries a number about to come up again
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(try_take(actor(i % 2), {0, 0}, 2));
    ASSERT_EQ(sum({0, 0}), total_units(grant(), {0, 0})) << i;
  }
}

TEST_F(GrantTest, TheDeadOfAReusedSlotIsNotReapedTwice) {
  ASSERT_TRUE(try_take(actor(3), {0, 0}, 9));
  grant().slots[3].owner = 77;  // another owner by now
  lower_for_dead(actor(0), 3, 66, {0, 0}, 0);
  EXPECT_EQ(charged_units(grant(), 3, 0), 9u);
}

TEST_F(GrantTest, AReserveIsLentToTheLastUnitAndOnlyWhileItsOwnerAllowsIt) {
  SlotCard& words = grant().slots[2].cards[0];
  grant().slots[2].owner = 77;
  ASSERT_TRUE(try_take({grant(), 2}, {0, 0}, 100));
  open_reserve(words, 60);
  words.pending.fetch_add(5);
  EXPECT_FALSE(lend_reserve({grant(), 1}, 2, 77, {0, 0}, 1)) << "a call is inside the driver";
  words.pending.fetch_sub(5);
  EXPECT_TRUE(lend_reserve({grant(), 1}, 2, 77, {0, 0}, 40));
  EXPECT_FALSE(lend_reserve({grant(), 1}, 2, 77, {0, 0}, 21));
  EXPECT_TRUE(lend_reserve({grant(), 1}, 2, 77, {0, 0}, 15));
  EXPECT_EQ(total_units(grant(), {0, 0}), 45u);
  EXPECT_EQ(close_reserve(words), 5u);
  EXPECT_EQ(close_reserve(words), 0u);
  EXPECT_FALSE(lend_reserve({grant(), 1}, 2, 77, {0, 0}, 1));
  open_reserve(words, 60);
  EXPECT_FALSE(lend_reserve({grant(), 1}, 2, 78, {0, 0}, 1))
      << "the slot of another process by now";
  EXPECT_EQ(total_units(grant(), {0, 0}), 45u);
}

TEST_F(GrantTest, ManyProcessesNeverExceedAndSurviveRandomKills) {
  make(1, 1, 256 * kMiB);
  const Self self = read_self();
  const uint64_t me = owner_of(grant(), self);
  const int mine = claim_slot(grant(), self, 0);
  ASSERT_GE(mine, 0);
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    pid_t pids[8];
    for (pid_t& pid : pids) {
      pid = fork();
      if (pid == 0) {
        const Self child = read_self();
        const int slot = claim_slot(grant(), child, 0);
        if (slot < 0) _exit(3);
        std::mt19937 dice(static_cast<unsigned>(getpid()));
        uint64_t held = 0;
        for (;;) {
          const uint64_t units = 1 + dice() % 300;
          if (dice() % 3 != 0 && try_take({grant(), static_cast<uint32_t>(slot)}, {0, 0}, units))
            held += units;
          else if (held >= units)
            give_back({grant(), static_cast<uint32_t>(slot)}, {0, 0}, units), held -= units;
          if (charged_units(grant(), static_cast<uint32_t>(slot), 0) != held) _exit(4);
        }
      }
    }
    for (int look = 0; look < 2000; ++look)
      ASSERT_LE(total_units(grant(), {0, 0}) * kUnitBytes, 256 * kMiB);
    for (const pid_t pid : pids) {
      usleep(static_cast<useconds_t>(random() % 2000));
      kill(pid, SIGKILL);
      int status = 0;
      waitpid(pid, &status, 0);
      ASSERT_TRUE(WIFSIGNALED(status)) << "child saw a wrong charge, code " << WEXITSTATUS(status);
    }
    reap_all({grant(), static_cast<uint32_t>(mine)}, {me});
    ASSERT_EQ(total_units(grant(), {0, 0}), 0u);
    ASSERT_EQ(sum({0, 0}), 0u);
  }
}

TEST_F(GrantTest, AProcessThatExecsLosesItsClaim) {
  const Self self = read_self();
  const uint64_t me = owner_of(grant(), self);
  const int mine = claim_slot(grant(), self, 0);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    const Self child = read_self();
    const int slot = claim_slot(grant(), child, 0);
    if (!try_take({grant(), static_cast<uint32_t>(slot)}, {0, 0}, 100)) _exit(1);
    dup2(ready[1], 1);
    execlp("sh", "sh", "-c", "echo up; exec sleep 100", nullptr);
    _exit(1);
  }
  char buffer[3];
  ASSERT_EQ(read(ready[0], buffer, 3), 3);
  // A process with this pid and start time is alive, and yet its memory is gone.
  reap_all({grant(), static_cast<uint32_t>(mine)}, {me});
  EXPECT_EQ(total_units(grant(), {0, 0}), 0u);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

// A process that ran exec is another owner: a process that still reaps the old owner must not touch
// the new one.
TEST_F(GrantTest, AReaperOfTheProgramBeforeAnExecDoesNotTouchTheOneAfter) {
  Self before = read_self();
  Self after = before;
  after.stack += 4096;
  const auto old_slot = static_cast<uint32_t>(claim_slot(grant(), before, 0));
  ASSERT_TRUE(try_take(actor(old_slot), {0, 0}, 7));
  const uint64_t dead = grant().slots[old_slot].owner;
  const auto new_slot = static_cast<uint32_t>(claim_slot(grant(), after, 0));
  ASSERT_NE(new_slot, old_slot);
  ASSERT_TRUE(try_take(actor(new_slot), {0, 0}, 9));
  reap_slot(actor(1000), old_slot, dead, {1});
  EXPECT_EQ(charged_units(grant(), new_slot, 0), 9u);
  EXPECT_EQ(total_units(grant(), {0, 0}), 9u);
}

TEST_F(GrantTest, AnExportEndsForExactlyOneCallerAndNotWhileItIsOpen) {
  const Self self = read_self();
  const uint64_t me = owner_of(grant(), self);
  const auto mine = static_cast<uint32_t>(claim_slot(grant(), self, 0));
  const int index = add_export(grant(), mine, me, 0, 5, 77);
  ASSERT_GE(index, 0);
  Export& entry = grant().exports[index];
  ASSERT_EQ(open_export(grant(), mine, 77), index);
  EXPECT_FALSE(end_export(grant(), entry, {me}));
  EXPECT_EQ(open_export(grant(), mine, 77), -1);  // no process can open it any more
  close_export(grant(), mine, static_cast<uint32_t>(index));
  const uint64_t raw = entry.state;
  EXPECT_TRUE(end_export(grant(), entry, {me}));
  EXPECT_FALSE(move_export(entry, raw, ExportWord::kFree));
}

TEST_F(GrantTest, ExportedMemoryOfTheDeadStaysChargedWhileAnOpenerLives) {
  const Self self = read_self();
  const uint64_t me = owner_of(grant(), self);
  const auto mine = static_cast<uint32_t>(claim_slot(grant(), self, 0));
  const pid_t pid = fork();
  if (pid == 0) {
    const Self child = read_self();
    const uint64_t owner = owner_of(grant(), child);
    const auto slot = static_cast<uint32_t>(claim_slot(grant(), child, 0));
    if (!try_take({grant(), slot}, {0, 0}, 100)) _exit(1);
    if (add_export(grant(), slot, owner, 0, 32, 0xabc) < 0) _exit(1);
    pause();
  }
  int opened = -1;
  while (opened < 0) opened = open_export(grant(), mine, 0xabc);
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  reap_all({grant(), mine}, {me});
  EXPECT_EQ(total_units(grant(), {0, 0}), 32u);
  reap_all({grant(), mine}, {me});
  EXPECT_EQ(total_units(grant(), {0, 0}), 32u);
  close_export(grant(), mine, static_cast<uint32_t>(opened));
  reap_all({grant(), mine}, {me});
  EXPECT_EQ(total_units(grant(), {0, 0}), 0u);
  EXPECT_EQ(open_export(grant(), mine, 0xabc), -1);
}

// Two processes with the grant in a real file, where leases are possible.
class LeaseTest : public GrantTest {
 protected:
  LeaseTest() {
    const int fd = mkstemp(path_);
    EXPECT_GE(fd, 0);
    EXPECT_EQ(ftruncate(fd, sizeof(Grant)), 0);
    munmap(memory_, sizeof(Grant));
    memory_ = mmap(nullptr, sizeof(Grant), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    make(1, 1, 64 * kMiB);
    mine_ = static_cast<uint32_t>(claim_slot(grant(), self_, 0, path_));
  }
  ~LeaseTest() override {
    unlink(path_);
    munmap(static_cast<void*>(child_), 4096);
  }

  // Forks a process that claims a slot, takes 100 units and calls `then`. Returns when it has them.
  template <class Then>
  pid_t holder(Then then) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      const int slot = claim_slot(grant(), read_self(), 0, path_);
      if (slot < 0 || !try_take({grant(), static_cast<uint32_t>(slot)}, {0, 0}, 100)) _exit(1);
      then(ready[1]);
      _exit(0);
    }
    char byte = 0;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return pid;
  }
  void kill_and_reap(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    reap_all({grant(), mine_}, {owner_of(grant(), self_), path_});
  }
  // A process forked by a holder.
  std::atomic<pid_t>* child_ = static_cast<std::atomic<pid_t>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  char path_[32] = "/tmp/mete-lease-XXXXXX";
  Self self_ = read_self();
  uint32_t mine_ = 0;
};

TEST_F(LeaseTest, WhatADeadProcessHeldIsFreeAtOnce) {
  const pid_t pid = holder([](int ready) { (void)!write(ready, "r", 1), pause(); });
  EXPECT_EQ(total_units(grant(), {0, 0}), 100u);
  kill_and_reap(pid);
  EXPECT_EQ(total_units(grant(), {0, 0}), 0u);
}

// Its GPU memory is still on the card: the child has the driver's descriptors open.
TEST_F(LeaseTest, AForkedChildKeepsItsDeadParentCharged) {
  const pid_t pid = holder([&](int ready) {
    if (fork() == 0) {
      *child_ = getpid();
      (void)!write(ready, "r", 1);
    }
    pause();
  });
  kill_and_reap(pid);
  EXPECT_EQ(total_units(grant(), {0, 0}), 100u);
  kill(*child_, SIGKILL);
  for (int i = 0; i < 30'000 && kill(*child_, 0) == 0; ++i)
    usleep(1000);  // another process reaps it
  reap_all({grant(), mine_}, {owner_of(grant(), self_), path_});
  EXPECT_EQ(total_units(grant(), {0, 0}), 0u);
}

TEST_F(LeaseTest, AChildThatRunsAnotherProgramDoesNotKeepItsParentCharged) {
  const pid_t pid = holder([&](int ready) {
    if (fork() == 0) {
      *child_ = getpid();
      dup2(ready, 1);
      execlp("sh", "sh", "-c", "echo up; exec sleep 100", nullptr);
    }
    pause();
  });
  kill_and_reap(pid);
  EXPECT_EQ(total_units(grant(), {0, 0}), 0u);
  EXPECT_EQ(kill(*child_, SIGKILL), 0);
}

TEST_F(LeaseTest, LeavesNoDescriptorOpen) {
  const int before = dup(0);
  close(before);
  claim_slot(grant(), self_, 0, path_);
  const int after = dup(0);
  close(after);
  EXPECT_EQ(before, after);
}

TEST(Stat, NameMayHoldParenthesesAndSpaces) {
  const char text[] =
      "412 (a) R (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 3 0 98765 20 21 22 23 24 777 26 27\n";
  ProcessStat stat;
  ASSERT_TRUE(parse_stat(text, sizeof(text) - 1, &stat));
  EXPECT_EQ(stat.state, 'S');
  EXPECT_EQ(stat.threads, 3u);
  EXPECT_EQ(stat.start, 98765u);
  EXPECT_EQ(stat.stack, 777u);
  EXPECT_FALSE(parse_stat("412 (x", 6, &stat));
  EXPECT_FALSE(parse_stat("", 0, &stat));
}

TEST(Stat, OwnNumbersAgreeWithTheKernel) {
  const Self self = read_self();
  EXPECT_EQ(self.pid, static_cast<uint32_t>(getpid()));
  EXPECT_GT(self.start, 0u);
}

// The fields that 1.2 added are zero in it, and those that 1.3 added are zero in files of 1.2.
TEST(CheckGrant, AFileOfTheReleaseBeforeIsGood) {
  auto* memory = static_cast<unsigned char*>(calloc(1, sizeof(Grant)));
  GrantCard cards_of_job[1] = {};
  GrantSpec spec;
  spec.cards = cards_of_job;
  spec.card_count = 1;
  spec.parkable = true;
  cards_of_job[0].ceiling_bytes = 64 * kMiB;
  ASSERT_TRUE(init_grant(memory, spec));
  auto& grant = *reinterpret_cast<Grant*>(memory);
  grant.header.minor = 1;
  grant.header.cards[0].ceiling_bytes = 0;
  grant.header.header_check = grant_header_check(grant.header);
  EXPECT_EQ(check_grant(memory, sizeof(Grant)), GrantCheck::kOk);
  EXPECT_EQ(grant.header.features & kGrowing, 0u);
  EXPECT_TRUE(try_take({grant, 0}, {0, 0}, units_for(64 * kMiB)));
  EXPECT_FALSE(try_take({grant, 0}, {0, 0}, 1));
  EXPECT_FALSE(lend_reserve({grant, 1}, 0, 0, {0, 0}, 1))
      << "a process without an open reserve lends nothing";
  free(memory);
}

TEST(CheckGrant, NamesWhatIsWrong) {
  auto* memory = static_cast<unsigned char*>(calloc(1, sizeof(Grant)));
  EXPECT_EQ(check_grant(memory, sizeof(Grant)), GrantCheck::kNotAGrant);
  EXPECT_EQ(check_grant(memory, 3), GrantCheck::kNotAGrant);
  GrantCard cards_of_job[1] = {};
  GrantSpec spec;
  spec.cards = cards_of_job;
  spec.card_count = 1;
  ASSERT_TRUE(init_grant(memory, spec));
  EXPECT_EQ(check_grant(memory, sizeof(Grant)), GrantCheck::kOk);
  EXPECT_EQ(check_grant(memory, sizeof(Grant) - 1), GrantCheck::kTruncated);
  EXPECT_EQ(check_grant(memory, 100), GrantCheck::kTruncated);
  auto& grant = *reinterpret_cast<Grant*>(memory);
  grant.header.major = 2;
  EXPECT_EQ(check_grant(memory, sizeof(Grant)), GrantCheck::kNewerVersion);
  grant.header.major = 1;
  grant.header.card_count = 2;
  EXPECT_EQ(check_grant(memory, sizeof(Grant)), GrantCheck::kCorrupt);
  free(memory);
}

}  // namespace
}  // namespace mete::abi
