// SPDX-License-Identifier: Apache-2.0
// With a real helper process and a driver with one card. machine_test.cc and judge_test.cc test
// what a reading is turned into.
#include "daemon/eyes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "tests/support/manual_loop.h"

namespace mete::daemon {
namespace {

constexpr char kCard[] = "GPU-00000000-0000-0000-0000-000000000001";

struct OneCard final : seam::Driver {
  Result<seam::DriverIdentity> identity() override {
    return seam::DriverIdentity{"570.1", std::nullopt};
  }
  Result<std::vector<seam::CardReading>> read_all(seam::Milliseconds) override {
    seam::CardReading card;
    card.uuid = kCard;
    card.type = "H200";
    card.total = Bytes::from_gib(80);
    card.reserved = Bytes();
    card.free = Bytes::from_gib(80);
    card.used = Bytes();
    card.processes.emplace();
    return std::vector{card};
  }
};

class EyesTest : public testing::Test {
 protected:
  EyesTest() {
    char name[] = "/tmp/mete-eyes-XXXXXX";
    folder_ = mkdtemp(name);
    settings_.helper.open = [] {
      return Result<std::unique_ptr<seam::Driver>>(std::make_unique<OneCard>());
    };
    MoverSettings movers;
    movers.state_dir = folder_;
    movers_.emplace(movers, loop_.loop(), loop_, [](const std::string&) {});
  }
  ~EyesTest() override {
    eyes_.reset();
    std::filesystem::remove_all(folder_);
  }
  void open() {
    eyes_.emplace(settings_, loop_.loop(), loop_, state_, claims_, *movers_,
                  Eyes::Callbacks{[this](core::Input) { ++told_; },
                                  [this](serve::MachineReading machine) {
                                    machine_ = std::move(machine);
                                    ++looks_;
                                  }});
  }
  bool sees() {
    return loop_.until([this] { return looks_ > 0; });
  }

  std::string folder_;
  support::ManualLoop loop_;
  core::State state_;
  ClaimsKeeper claims_{std::nullopt, loop_.loop(), [] {}};
  std::optional<Movers> movers_;
  EyesSettings settings_;
  std::optional<Eyes> eyes_;
  serve::MachineReading machine_;
  int looks_ = 0;
  int told_ = 0;
};

TEST_F(EyesTest, TheMachineIsSeenOnceItWasRead) {
  open();
  EXPECT_EQ(looks_, 0) << "nothing is known yet";
  ASSERT_TRUE(sees());
  ASSERT_EQ(machine_.pool.cards.size(), 1u);
  EXPECT_EQ(machine_.pool.cards[0].card.uuid, kCard);
  EXPECT_FALSE(machine_.pool.cards[0].stale);
  EXPECT_EQ(machine_.driver, "570.1");
  EXPECT_EQ(machine_.trouble, "");
  EXPECT_EQ(told_, 0) << "no job runs";
}

TEST_F(EyesTest, AnOldReadingIsLookedAtAgain) {
  open();
  ASSERT_TRUE(sees());
  const int before = looks_;
  eyes_->tick();
  EXPECT_EQ(looks_, before) << "it is new";
  loop_.leap(seam::Milliseconds(10'000));
  looks_ = 0;
  eyes_->tick();
  EXPECT_EQ(looks_, 1);
  EXPECT_TRUE(machine_.pool.cards.at(0).stale);
}

TEST_F(EyesTest, WithoutADriverItIsSaidWhy) {
  settings_.helper.open = []() -> Result<std::unique_ptr<seam::Driver>> {
    return Error::not_found("there is no driver").with_evidence("libnvidia-ml.so.1");
  };
  open();
  ASSERT_TRUE(sees());
  EXPECT_TRUE(machine_.pool.cards.empty());
  ASSERT_TRUE(machine_.unread);
  EXPECT_EQ(machine_.unread->code, ErrorCode::kNotFound);
  EXPECT_EQ(machine_.trouble, "there is no driver (libnvidia-ml.so.1)");
}

}  // namespace
}  // namespace mete::daemon
