// SPDX-License-Identifier: Apache-2.0
#include "node/card_wire.h"

#include <gtest/gtest.h>

namespace mete::node {
namespace {

CardSnapshot full_snapshot() {
  CardSnapshot snapshot;
  snapshot.at = seam::Nanoseconds(123456789012);
  snapshot.driver = {"580.159.04", 13000};
  seam::CardReading card;
  card.index = 3;
  card.uuid = "GPU-01234567-89ab-cdef-fedc-ba9876543210";
  card.name = "NVIDIA H200";
  card.type = "H200";
  card.pci = "00000000:17:00.0";
  card.total = Bytes::from_gib(141);
  card.reserved = Bytes::from_mib(600);
  card.free = Bytes::from_gib(100);
  card.used = Bytes::from_gib(40);
  card.utilisation_pct = 97;
  card.memory_utilisation_pct = 0;
  card.temperature_c = -3;
  card.power_mw = 699000;
  card.power_limit_mw = 700000;
  card.numa = 1;
  card.compute_mode = seam::ComputeMode::kExclusiveProcess;
  card.mig = false;
  card.links = {{0, 18}, {1, 18}};
  card.processes = {{412, Bytes::from_mib(518), false, 35}, {413, std::nullopt, true}};
  snapshot.cards.push_back(card);
  seam::CardReading lost;
  lost.state = seam::CardState::kLost;
  snapshot.cards.push_back(lost);
  snapshot.processes = {
      {412, true, 99, 1, 1000, "alice", "a b)\n", 400, "12", "100.1100"},
      {413, false, 0, 0, std::nullopt, "", "", 0, "", ""},
  };
  snapshot.processes[0].exiting = true;
  snapshot.processes[0].meter = {
      MeterFacts::State::kSlot,
      {{"GPU-0", Bytes::from_gib(3)}, {"GPU-1", Bytes::from_bytes(UINT64_MAX)}}};
  return snapshot;
}

Result<std::optional<CardMessage>> decode(std::string_view bytes) {
  CardDecoder decoder;
  decoder.feed(bytes);
  return decoder.next();
}

TEST(CardWire, EveryFieldComesThrough) {
  const CardMessage message = full_snapshot();
  EXPECT_EQ(**decode(*encode(message)), message);
}

TEST(CardWire, ErrorsComeThroughWithTheirWords) {
  const CardMessage message =
      Error::denied("nvmlInit: no permission (4)").with_evidence("e").with_hint("h");
  EXPECT_EQ(**decode(*encode(message)), message);
}

TEST(CardWire, BytesMayArriveOneByOne) {
  const std::string bytes =
      *encode(Pace{250}) + *encode(full_snapshot()) + *encode(Asking{}) + *encode(Pace{1000});
  CardDecoder decoder;
  std::vector<CardMessage> got;
  for (const char byte : bytes) {
    decoder.feed({&byte, 1});
    const Result<std::optional<CardMessage>> message = decoder.next();
    ASSERT_TRUE(message);
    if (*message) got.push_back(**message);
  }
  EXPECT_EQ(got, (std::vector<CardMessage>{Pace{250}, full_snapshot(), Asking{}, Pace{1000}}));
}

TEST(CardWire, AFrameThatLiesIsAnErrorForGood) {
  const std::string good = *encode(full_snapshot());
  for (std::size_t cut = 8; cut < good.size(); ++cut) {
    std::string bytes = good.substr(0, cut);  // its body ends in the middle of a field
    const auto size = static_cast<std::uint32_t>(cut - 8);
    for (int i = 0; i < 4; ++i) bytes[i] = static_cast<char>(size >> 8 * i);
    CardDecoder decoder;
    decoder.feed(bytes);
    ASSERT_FALSE(decoder.next()) << cut;
    decoder.feed(good);
    ASSERT_FALSE(decoder.next()) << "what follows is not believed";
  }
}

TEST(CardWire, RefusesOtherVersionsKindsAndSizes) {
  std::string bytes = *encode(Pace{1});
  bytes[4] = 99;
  EXPECT_FALSE(decode(bytes));
  bytes = *encode(Pace{1});
  bytes[6] = 9;
  EXPECT_FALSE(decode(bytes));
  bytes = *encode(Pace{1});
  bytes[3] = 0x7f;
  EXPECT_FALSE(decode(bytes)) << "not waited for: no sender sends that much";
  bytes = *encode(Asking{});
  bytes[0] = 1;
  EXPECT_FALSE(decode(bytes + "x")) << "bytes that mean nothing";
}

TEST(CardWire, ASnapshotThatIsTooLargeIsRefusedHere) {
  CardSnapshot snapshot;
  snapshot.processes.resize(1 << 20);
  EXPECT_EQ(encode(snapshot).error().code, ErrorCode::kExhausted);
}

}  // namespace
}  // namespace mete::node
