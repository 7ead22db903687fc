// SPDX-License-Identifier: Apache-2.0
#include "node/meter_look.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "abi/account.h"
#include "abi/process.h"
#include "base/fd.h"

namespace mete::node {
namespace {

using State = MeterFacts::State;
constexpr std::uint64_t kMiB = 1024 * 1024;

// A grant file, in which this process has a slot with 100 MiB once it claims one.
class MeterLookTest : public testing::Test {
 protected:
  MeterLookTest() {
    char name[] = "/tmp/meter_look.XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    EXPECT_EQ(mkdir((folder_ + "/grants").c_str(), 0700), 0);
    path_ = folder_ + "/grants/12.1";
    const Fd file(open(path_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
    EXPECT_EQ(ftruncate(file.get(), sizeof(abi::Grant)), 0);
    void* at = mmap(nullptr, sizeof(abi::Grant), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    EXPECT_NE(at, MAP_FAILED);
    grant_ = static_cast<abi::Grant*>(at);
    abi::GrantCard cards[1] = {};
    abi::GrantSpec spec;
    spec.cards = cards;
    spec.card_count = 1;
    cards[0].ceiling_bytes = 1024 * kMiB;
    cards[0].uuid[15] = 9;
    EXPECT_TRUE(abi::init_grant(grant_, spec));
  }
  ~MeterLookTest() override {
    if (grant_ != nullptr) munmap(grant_, sizeof(abi::Grant));
    for (const std::string& path : {path_, folder_ + "/grants/link", folder_ + "/grants/pipe"})
      (void)unlink(path.c_str());
    (void)rmdir((folder_ + "/grants").c_str());
    (void)rmdir(folder_.c_str());
  }
  std::uint32_t claim(const abi::Self& self = abi::read_self()) {
    const auto slot = static_cast<std::uint32_t>(abi::claim_slot(*grant_, self, 0));
    EXPECT_TRUE(abi::try_take({*grant_, slot}, {0, 0}, abi::units_for(100 * kMiB)));
    return slot;
  }
  MeterFacts look(const std::string& grant) {
    look_.begin();
    return look_.take(*read_stat(getpid()), "A=1" + std::string(1, '\0') + "METE_GRANT=" + grant);
  }
  MeterFacts look() { return look(path_); }

  std::string folder_, path_;
  abi::Grant* grant_ = nullptr;
  MeterLook look_;
};

TEST_F(MeterLookTest, FindsTheSlotOfAProcess) {
  EXPECT_EQ(look().state, State::kNone);
  const std::uint32_t slot = claim();
  const MeterFacts facts = look();
  EXPECT_EQ(facts.state, State::kSlot);
  ASSERT_EQ(facts.charges.size(), 1u);
  EXPECT_EQ(facts.charges[0].uuid, "GPU-00000000-0000-0000-0000-000000000009");
  EXPECT_EQ(facts.charges[0].bytes, Bytes::from_mib(100));
  // What the driver does not count is not expected of it.
  grant_->slots[slot].cards[0].unseen_units.store(abi::units_for(40 * kMiB));
  EXPECT_EQ(look().charges[0].bytes, Bytes::from_mib(60));
}

TEST_F(MeterLookTest, ThePeakIsThatOfTheJobAndOutlivesWhatWasHeld) {
  const std::uint32_t slot = claim();
  EXPECT_EQ(look().charges[0].peak, Bytes::from_mib(100));
  abi::give_back({*grant_, slot}, {0, 0}, abi::units_for(70 * kMiB));
  EXPECT_EQ(look().charges[0].bytes, Bytes::from_mib(30));
  EXPECT_EQ(look().charges[0].peak, Bytes::from_mib(100));
  grant_->accounts[0][0].peak_units.store(UINT64_MAX);
  EXPECT_EQ(look().charges[0].peak, Bytes::from_bytes(abi::kMaxUnits * abi::kUnitBytes));
}

TEST_F(MeterLookTest, CountsWhatItHasOpenOfOthers) {
  const std::uint32_t slot = claim();
  const int entry = abi::add_export(*grant_, slot + 1, 77, 0, abi::units_for(30 * kMiB), 5);
  ASSERT_GE(entry, 0);
  grant_->exports[entry].openers[slot / 64].fetch_or(1ull << slot % 64);
  EXPECT_EQ(look().charges[0].bytes, Bytes::from_mib(130));
}

TEST_F(MeterLookTest, AnotherProgramOfTheSamePidHasNoMeter) {
  abi::Self before = abi::read_self();
  before.stack += 4096;  // before it began to run this program
  claim(before);
  EXPECT_EQ(look().state, State::kNone);
}

TEST_F(MeterLookTest, AnUnknownNamespaceIsNotKnown) {
  abi::Self self = abi::read_self();
  self.name_space = 0;
  claim(self);
  EXPECT_EQ(look().state, State::kUnknown);
}

TEST_F(MeterLookTest, FindsTheFileAmongTheMappings) {
  claim();
  look_.begin();
  EXPECT_EQ(look_.take(*read_stat(getpid()), "A=1").state, State::kSlot);
  EXPECT_EQ(grant_in_maps("7f00-7f10 rw-s 00000000 08:01 77  /home/a b/grants/12.1\n"
                          "7f20-7f30 r-xp 00000000 08:01 78  /usr/lib/libc.so.6\n"),
            "/home/a b/grants/12.1");
  EXPECT_EQ(grant_in_maps("7f20-7f30 r-xp 00000000 08:01 78  /usr/lib/libc.so.6\n7f rw-p 0 0"), "");
  EXPECT_EQ(grant_in_maps(""), "");
}

TEST_F(MeterLookTest, WhatIsNoGrantIsNotKnown) {
  EXPECT_EQ(look(folder_ + "/grants/none").state, State::kUnknown);
  EXPECT_EQ(look("/dev/zero").state, State::kUnknown);
  EXPECT_EQ(look("relative").state, State::kUnknown);
  ASSERT_EQ(mkfifo((folder_ + "/grants/pipe").c_str(), 0600), 0);
  EXPECT_EQ(look(folder_ + "/grants/pipe").state, State::kUnknown) << "and does not wait";
  ASSERT_EQ(symlink(path_.c_str(), (folder_ + "/grants/link").c_str()), 0);
  EXPECT_EQ(look(folder_ + "/grants/link").state, State::kUnknown);
  claim();
  EXPECT_EQ(look().state, State::kSlot);
  // Truncated while in use: no SIGBUS follows.
  munmap(std::exchange(grant_, nullptr), sizeof(abi::Grant));
  ASSERT_EQ(truncate(path_.c_str(), 5000), 0);
  EXPECT_EQ(look().state, State::kUnknown);
}

}  // namespace
}  // namespace mete::node
