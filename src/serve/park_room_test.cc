// SPDX-License-Identifier: Apache-2.0
#include "serve/park_room.h"

#include <gtest/gtest.h>

namespace mete::serve {
namespace {

core::Pool two_cards() {
  core::Pool pool;
  for (const std::uint64_t gib : {40, 80}) {
    core::PoolCard card;
    card.card.index = static_cast<std::uint32_t>(pool.cards.size());
    card.card.uuid = "GPU-" + std::to_string(gib);
    card.card.capacity = Bytes::from_gib(gib);
    pool.cards.push_back(card);
  }
  return pool;
}

std::string note(const char* gpu, std::uint64_t room_gib, std::uint64_t host_gib = 1000) {
  core::Request request;
  request.gpu = *core::parse_gpu(gpu);
  return park_note(request, two_cards(),
                   {Bytes::from_gib(room_gib), Bytes::from_gib(host_gib), "/etc/mete/config.toml"});
}

TEST(ParkNote, NothingIsSaidOfWhatFits) {
  EXPECT_EQ(note("8G", 16), "");
  EXPECT_EQ(note("50%", 20), "");
  EXPECT_EQ(note("17G", 16), "") << "a context of a GiB is not moved";
  EXPECT_EQ(note("0", 0), "");
}

TEST(ParkNote, WhatDoesNotFitComesWithTheLineThatHelps) {
  EXPECT_EQ(note("32G", 16),
            "the job can be parked only while it uses at most 16 GiB of a card; its share is "
            "32 GiB\nto park all of it, in /etc/mete/config.toml: [park] arena = \"32G\"");
  EXPECT_NE(note("1", 16).find("arena = \"40G\""), std::string::npos) << "on the smaller card";
  EXPECT_NE(note("2", 16).find("arena = "), std::string::npos);
}

TEST(ParkNote, AMachineThatIsTooSmallNeedsAFolder) {
  EXPECT_NE(note("32G", 16, 48).find("spill_max = \"32G\""), std::string::npos);
}

TEST(ParkNote, WhatCanNeverBeIsSaidElsewhere) { EXPECT_EQ(note("500G", 16), ""); }

}  // namespace
}  // namespace mete::serve
