// SPDX-License-Identifier: Apache-2.0
#include "node/sampler.h"

#include <gtest/gtest.h>

namespace mete::node {
namespace {

using seam::CardReading;

constexpr char kFirst[] = "GPU-00000000-0000-0000-0000-000000000001";
constexpr char kSecond[] = "GPU-00000000-0000-0000-0000-000000000002";

CardReading card(unsigned index, const char* uuid, std::vector<seam::ProcessReading> processes) {
  CardReading reading;
  reading.index = index;
  reading.uuid = uuid;
  reading.total = Bytes::from_gib(141);
  reading.free = Bytes::from_gib(100);
  reading.used = Bytes::from_gib(40);
  reading.processes = std::move(processes);
  return reading;
}

struct FixedClock final : seam::Clock {
  seam::Nanoseconds now{5};
  seam::Nanoseconds monotonic() override { return now; }
  WallTime wall() override { return {}; }
};

struct OneReading final : seam::Driver {
  explicit OneReading(FixedClock& c) : clock(c) {}
  FixedClock& clock;
  Result<std::vector<CardReading>> answer = std::vector<CardReading>();
  Result<seam::DriverIdentity> identity() override {
    return seam::DriverIdentity{"1", std::nullopt};
  }
  Result<std::vector<CardReading>> read_all(seam::Milliseconds) override {
    clock.now += seam::Nanoseconds(1000);  // a reading takes time
    return answer;
  }
};

TEST(Sampler, GathersWhatAProcessHoldsOnEveryCard) {
  const Sample sample =
      make_sample({card(0, kFirst, {{20, Bytes::from_mib(518), false}, {10, std::nullopt, false}}),
                   card(1, kSecond, {{20, Bytes::from_mib(7), false}})},
                  seam::Nanoseconds(1));
  ASSERT_EQ(sample.processes.size(), 2u);
  const ProcessSample* both = sample.find(20);
  ASSERT_NE(both, nullptr);
  EXPECT_EQ(both->used,
            (std::vector<std::optional<Bytes>>{Bytes::from_mib(518), Bytes::from_mib(7)}));
  const ProcessSample* silent = sample.find(10);
  ASSERT_NE(silent, nullptr);
  EXPECT_EQ(silent->present, (std::vector<bool>{true, false}))
      << "present, though the driver does not report how much it holds";
  EXPECT_EQ(silent->used[0], std::nullopt);
  EXPECT_EQ(sample.find(15), nullptr);
  EXPECT_EQ(sample.cards[1].uuid_bytes->back(), 2);
}

TEST(Sampler, ALostCardTellsNothing) {
  CardReading lost;
  lost.uuid = kFirst;
  lost.state = seam::CardState::kLost;
  const Sample sample = make_sample({lost}, {});
  EXPECT_TRUE(sample.cards[0].lost);
  EXPECT_FALSE(sample.cards[0].processes_known);
  EXPECT_EQ(sample.cards[0].free, std::nullopt);
}

TEST(Sampler, IsDatedFromBeforeTheReading) {
  FixedClock clock;
  OneReading driver(clock);
  EXPECT_EQ(take_sample(driver, clock, seam::Milliseconds(10))->at, seam::Nanoseconds(5));
}

TEST(Sampler, PassesTheDriversErrorOn) {
  FixedClock clock;
  OneReading driver(clock);
  driver.answer = Error::busy("later");
  EXPECT_EQ(take_sample(driver, clock, seam::Milliseconds(10)).error().code, ErrorCode::kBusy);
}

}  // namespace
}  // namespace mete::node
