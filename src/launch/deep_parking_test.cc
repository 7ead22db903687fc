// SPDX-License-Identifier: Apache-2.0
// Parking by the driver. The processes are slots of a grant file in memory, and the program is a
// script that answers what a test wants. Each test steps through a park or a return, and checks the
// order of the meter's and the driver's part, also when either fails, hangs or is killed.
#include "launch/deep_parking.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <sstream>

#include "abi/process.h"
#include "abi/reserve.h"

namespace mete::launch {
namespace {

using abi::ParkAnswer;
using abi::ParkOrder;
using State = DeepParking::State;

constexpr char kDone[] = R"({"end":"done","pid":0,"step":"","code":0,"error":""})";
constexpr std::uint64_t kUnits = 100;

class DeepParkingTest : public testing::Test {
 protected:
  DeepParkingTest() {
    abi::GrantCard cards[1] = {};
    abi::GrantSpec spec;
    spec.cards = cards;
    spec.card_count = 1;
    spec.parkable = true;
    cards[0].ceiling_bytes = 1 << 30;
    EXPECT_TRUE(abi::init_grant(grant_.get(), spec));
    grant_->header.slot_high = 1;
    grant_->slots[0].owner = abi::owner_of(*grant_, abi::read_self());
    grant_->slots[0].cards[0].charge = abi::ChargeWord{kUnits, 1}.pack();
    grant_->accounts[0][0].total = abi::TotalWord{kUnits, 0, 1}.pack();
    unparkable();
    says({kDone});
  }
  ~DeepParkingTest() override {
    (void)!system(("rm -r " + folder_).c_str());  // NOLINT(cert-env33-c): a folder of ours
  }

  // By the meter.
  void unparkable() {
    grant_->slots[0].unparkable = 1ull << static_cast<int>(abi::ParkReason::kThread);
  }
  // The answers of the program, one line for each run; "": it is killed.
  void says(const std::vector<std::string>& lines) {
    for (std::size_t i = 0; i < lines.size(); ++i)
      std::ofstream(folder_ + "/" + std::to_string(i + 1))
          << lines[i] << (lines[i].empty() ? "" : "\n");
    std::ofstream(folder_ + "/runs");
    std::ofstream(folder_ + "/can") << can_ << "\n";
    std::ofstream script(folder_ + "/program");
    script << "#!/bin/sh\ncd " << folder_ << "\n"
           << "case \"$*\" in *' can') cat can; exit ;; esac\n"
           << "echo \"$@\" >> runs\nn=$(wc -l < runs)\n"
           << "[ -s \"$n\" ] || kill -9 $$\ncat \"$n\"\n";
    script.close();
    (void)chmod((folder_ + "/program").c_str(), 0700);
  }
  std::vector<std::string> runs() const {
    std::vector<std::string> lines;
    std::ifstream file(folder_ + "/runs");
    for (std::string line; std::getline(file, line);)
      lines.push_back(line.substr(line.find("--timeout-ms")));
    return lines;
  }
  DeepParking::End end() {
    for (int i = 0; i < 20'000; ++i) {
      if (const auto told = deep_.step(now_)) return *told;
      usleep(1000);
    }
    ADD_FAILURE() << "no end";
    return {};
  }
  static std::string me() { return std::to_string(getpid()); }

  static std::string make_folder() {
    char folder[] = "/tmp/mete-deep-XXXXXX";
    return mkdtemp(folder);
  }

  std::string folder_ = make_folder();
  std::string can_ = kDone;  // its answer to "can"
  std::uint64_t now_ = 1;
  std::unique_ptr<abi::Grant> grant_ = std::make_unique<abi::Grant>();
  Parking meter_{*grant_};
  DeepParking deep_{*grant_, meter_, {folder_ + "/program", "", folder_ + "/mps"}};
};

TEST_F(DeepParkingTest, TheDriverAloneWhereTheMeterCannot) {
  deep_.park(1, 5'000'000'000);
  EXPECT_TRUE(end().done);
  EXPECT_EQ(deep_.state(), State::kParked);
  EXPECT_EQ(runs(), std::vector<std::string>{"--timeout-ms 5000 out " + me()});
  EXPECT_EQ(deep_.held(0), DeepParking::kLeft);
  EXPECT_EQ(deep_.needs(0), Bytes::from_bytes(kUnits * abi::kUnitBytes));
  says({kDone});
  deep_.unpark(2);
  EXPECT_TRUE(end().done);
  EXPECT_EQ(runs(), std::vector<std::string>{"--timeout-ms 5000 in " + me()});
  EXPECT_EQ(deep_.state(), State::kRunning);
  EXPECT_EQ(deep_.held(0), Bytes::from_bytes(kUnits * abi::kUnitBytes));
}

TEST_F(DeepParkingTest, TheMeterMovesFirstAndReturnsLast) {
  grant_->slots[0].unparkable = 0;
  const auto order = [this] { return ParkOrder::unpack(grant_->header.park_order.load()); };
  const auto answer = [&](ParkAnswer::Kind kind) {
    grant_->slots[0].park = ParkAnswer{order().number, 0, 0, kind}.pack();
  };
  deep_.park(1, 5'000'000'000);
  while (deep_.state() == State::kAsking) EXPECT_FALSE(deep_.step(1));
  answer(ParkAnswer::kQuiet);
  EXPECT_FALSE(deep_.step(2));
  EXPECT_TRUE(runs().empty());
  answer(ParkAnswer::kParked);
  EXPECT_TRUE(end().done);
  EXPECT_EQ(runs().size(), 1u);
  deep_.unpark(3);
  says({kDone});
  EXPECT_EQ(order().kind, ParkOrder::kMove) << "not before the driver has brought it back";
  while (deep_.state() == State::kDriverIn) (void)deep_.step(4);
  EXPECT_EQ(order().kind, ParkOrder::kBack);
  answer(ParkAnswer::kReturned);
  EXPECT_TRUE(end().done);
  EXPECT_EQ(order().kind, ParkOrder::kRun);
}

// A job that the meter alone has parked goes deeper, or stays as it is.
TEST_F(DeepParkingTest, WhatTheMeterHadParkedStaysParked) {
  grant_->slots[0].unparkable = 0;
  const auto answer = [&](ParkAnswer::Kind kind) {
    const ParkOrder order = ParkOrder::unpack(grant_->header.park_order.load());
    grant_->slots[0].park = ParkAnswer{order.number, 0, 0, kind}.pack();
  };
  meter_.park(1, 5'000'000'000);
  answer(ParkAnswer::kQuiet);
  EXPECT_FALSE(meter_.step(2));
  answer(ParkAnswer::kParked);
  EXPECT_TRUE(meter_.step(3)->done);
  grant_->slots[0].moved_bytes = 64 * abi::kUnitBytes;
  says({R"({"end":"busy","pid":7,"step":"lock","code":600,"error":"x"})", kDone});
  deep_.park(4, 1'000'000'000);
  EXPECT_FALSE(end().done);
  EXPECT_EQ(deep_.state(), State::kRunning);
  EXPECT_EQ(meter_.state(), Parking::State::kParked);
  says({kDone});
  deep_.park(5, 1'000'000'000);
  EXPECT_TRUE(end().done);
  EXPECT_EQ(deep_.needs(0), Bytes::from_bytes((kUnits + 64) * abi::kUnitBytes));
}

TEST_F(DeepParkingTest, OneThatIsRefusedRunsOn) {
  says(
      {R"({"end":"busy","pid":7,"step":"lock","code":600,"error":"CUDA_ERROR_NOT_READY"})", kDone});
  deep_.park(1, 1'000'000'000);
  const DeepParking::End told = end();
  EXPECT_FALSE(told.done);
  EXPECT_EQ(told.why, "its work on the card did not end in time (pid 7)");
  EXPECT_EQ(deep_.state(), State::kRunning);
  EXPECT_EQ(runs().back(), "--timeout-ms 1000 in " + me()) << "whatever the program left behind";
}

TEST_F(DeepParkingTest, AProgramThatIsKilledIsStartedAgain) {
  says({"", kDone});
  deep_.park(1, 1'000'000'000);
  EXPECT_TRUE(end().done);
  EXPECT_EQ(runs().size(), 2u);
}

TEST_F(DeepParkingTest, NotForEver) {
  says({"", "", "", kDone});
  deep_.park(1, 1'000'000'000);
  EXPECT_FALSE(end().done);
  EXPECT_EQ(deep_.state(), State::kRunning);
  EXPECT_EQ(runs().size(), 4u);
}

TEST_F(DeepParkingTest, ADriverThatHangsIsNotWaitedFor) {
  says({"never"});
  std::ofstream(folder_ + "/program")
      << "#!/bin/sh\ncd " << folder_ << "\n"
      << "case \"$*\" in *' can') cat can; exit ;; esac\necho \"$@\" >> runs\n"
      << "case \"$*\" in *' out '*) exec sleep 600 2>/dev/null ;; esac\necho '" << kDone << "'\n";
  deep_.park(1, 5'000'000'000);
  while (runs().empty()) {
    ASSERT_FALSE(deep_.step(now_));
    usleep(1000);
  }
  ASSERT_FALSE(deep_.step(now_)) << "its time begins";
  ASSERT_FALSE(deep_.step(now_ += 60'000'000'000));
  now_ += 10'000'000'000;
  const DeepParking::End told = end();
  EXPECT_FALSE(told.done);
  EXPECT_EQ(told.why, "the driver did not answer in 65 s");
  EXPECT_EQ(runs().back(), "--timeout-ms 5000 in " + me()) << "what was begun is undone";
  EXPECT_EQ(deep_.state(), State::kRunning);
}

TEST_F(DeepParkingTest, NothingIsBegunWithoutTheBytes) {
  deep_.park(1, 1'000'000'000);
  EXPECT_TRUE(end().done);
  grant_->accounts[0][0].limit_bytes = (kUnits - 1) * abi::kUnitBytes;
  deep_.unpark(2);
  DeepParking::End told = end();
  EXPECT_TRUE(!told.done && told.no_room) << told.why;
  grant_->accounts[0][0].limit_bytes = kUnits * abi::kUnitBytes;
  // The card must have the margin too, if its free memory is known.
  grant_->header.cards[0].free_bytes = kUnits * abi::kUnitBytes;
  grant_->header.cards[0].published_ns = 1;
  deep_.unpark(2);
  told = end();
  EXPECT_TRUE(!told.done && told.no_room) << told.why;
  EXPECT_EQ(runs().size(), 1u);
  EXPECT_EQ(deep_.state(), State::kParked);
  grant_->header.cards[0].free_bytes =
      kUnits * abi::kUnitBytes + DeepParking::kReturnMargin.count();
  // Also the part of a process's reserve that was lent.
  constexpr std::uint64_t kLent = DeepParking::kLeft.count() + abi::kUnitBytes;
  abi::open_reserve(grant_->slots[0].cards[0], abi::units_for(abi::kReserveBytes - kLent));
  deep_.unpark(2);
  told = end();
  EXPECT_TRUE(!told.done && told.no_room) << told.why;
  grant_->header.cards[0].free_bytes += abi::kUnitBytes;
  says({kDone});
  deep_.unpark(2);
  EXPECT_TRUE(end().done);
}

TEST_F(DeepParkingTest, WhatItCannotDoIsKnownBeforehand) {
  EXPECT_EQ(deep_.obstacle(), "");
  for (const abi::ParkReason reason :
       {abi::ParkReason::kManaged, abi::ParkReason::kShared, abi::ParkReason::kForeign}) {
    grant_->slots[0].unparkable = 1ull << static_cast<int>(reason);
    EXPECT_NE(deep_.obstacle(), "");
    deep_.park(1, 1'000'000'000);
    EXPECT_FALSE(end().done);
  }
  unparkable();
  // An export to another process.
  grant_->exports[3].owner = grant_->slots[0].owner.load();
  grant_->exports[3].state = abi::ExportWord{1, 0, 0, abi::ExportWord::kLive, 1}.pack();
  EXPECT_NE(deep_.obstacle().find("shares memory"), std::string::npos);
  grant_->exports[3].state = 0;
  // Under an MPS daemon that lives, and not under one that is gone.
  (void)mkdir((folder_ + "/mps").c_str(), 0700);
  std::ofstream(folder_ + "/mps/nvidia-cuda-mps-control.pid") << me() << "\n";
  EXPECT_NE(deep_.obstacle().find("MPS"), std::string::npos);
  std::ofstream(folder_ + "/mps/nvidia-cuda-mps-control.pid") << 0x3ffffe << "\n";
  EXPECT_EQ(deep_.obstacle(), "");
  const std::uint32_t ours = abi::OwnerWord::unpack(grant_->slots[0].owner.load()).name_space;
  grant_->slots[0].owner = abi::OwnerWord{5, ours + 1, 1, 1}.pack();
  EXPECT_NE(deep_.obstacle().find("pid namespace"), std::string::npos);
  EXPECT_TRUE(runs().empty());
}

// The driver keeps the bytes in the processes themselves.
TEST_F(DeepParkingTest, NotIntoMoreMemoryThanTheHostHas) {
  (void)mkdir((folder_ + "/host").c_str(), 0700);
  const auto has = [this](std::uint64_t kib) {
    std::ofstream(folder_ + "/host/meminfo")
        << "MemTotal: 99999999 kB\nMemAvailable: " << kib << " kB\n";
  };
  DeepParking deep(*grant_, meter_,
                   {folder_ + "/program", "", folder_ + "/mps", {folder_ + "/host", folder_}});
  const std::uint64_t wanted = kUnits * abi::kUnitBytes + DeepParking::kHostMargin.count();
  const auto end_of = [&] {
    for (;;)
      if (const auto told = deep.step(1)) return *told;
  };
  has(wanted / 1024 - 1);
  deep.park(1, 1'000'000'000);
  const DeepParking::End told = end_of();
  EXPECT_FALSE(told.done);
  EXPECT_NE(told.why.find("the host has too little memory"), std::string::npos) << told.why;
  EXPECT_EQ(deep.state(), State::kRunning);
  EXPECT_TRUE(runs().empty());
  has(wanted / 1024);
  // A group above the process that leaves less.
  (void)mkdir((folder_ + "/host/" + me()).c_str(), 0700);
  (void)mkdir((folder_ + "/jobs").c_str(), 0700);
  std::ofstream(folder_ + "/host/" + me() + "/cgroup") << "0::/jobs/12\n";
  std::ofstream(folder_ + "/jobs/memory.max") << wanted + 4095 << "\n";
  std::ofstream(folder_ + "/jobs/memory.current") << 4096 << "\n";
  deep.park(1, 1'000'000'000);
  EXPECT_FALSE(end_of().done);
  std::ofstream(folder_ + "/jobs/memory.current") << 4095 << "\n";
  deep.park(1, 1'000'000'000);
  EXPECT_TRUE(end_of().done);
}

TEST_F(DeepParkingTest, ADriverThatCannotIsKnownOnceItWasAsked) {
  can_ = R"({"end":"unsupported","pid":0,"step":"open","code":0,"error":"this driver has no x"})";
  says({kDone});
  deep_.learn();
  while (deep_.obstacle().empty()) (void)deep_.step(1);
  EXPECT_NE(deep_.obstacle().find("this driver has no x"), std::string::npos) << deep_.obstacle();
}

TEST_F(DeepParkingTest, ADriverThatCannotIsAskedBeforeAnythingIsMoved) {
  can_ = R"({"end":"unsupported","pid":0,"step":"open","code":0,"error":"this driver has no x"})";
  says({kDone});
  grant_->slots[0].unparkable = 0;
  deep_.park(1, 5'000'000'000);
  EXPECT_NE(end().why.find("this driver has no x"), std::string::npos);
  EXPECT_EQ(grant_->header.park_order.load(), 0u) << "the meter was not told to move anything";
  EXPECT_TRUE(runs().empty());
}

}  // namespace
}  // namespace mete::launch
