// SPDX-License-Identifier: Apache-2.0
#include "simulate/asks.h"

#include <gtest/gtest.h>

namespace mete::simulate {
namespace {

using core::cluster::Ask;

core::Request request(const std::string& gpu) {
  core::Request request;
  request.gpu = *core::parse_gpu(gpu);
  return request;
}

TEST(Asks, RequestsOfTheGrammarAreAskedOfClusters) {
  EXPECT_EQ(*ask_of(request("0")), Ask{});
  EXPECT_EQ(*ask_of(request("2")), (Ask{.cards = 2, .share = 1000}));
  EXPECT_EQ(*ask_of(request("0.4")), (Ask{.cards = 1, .share = 400}));
  EXPECT_EQ(*ask_of(request("2x30G")), (Ask{.cards = 2, .share_mib = 30 * 1024}));
  EXPECT_EQ(*ask_of(request("8G..20G")), (Ask{.cards = 1, .share_mib = 8 * 1024}));
  core::Request all = request("1");
  all.cpus = 8;
  all.ram = Bytes::from_gib(4);
  all.gpu_type = "T4";
  EXPECT_EQ(*ask_of(all),
            (Ask{.cpu_milli = 8000, .ram_mib = 4096, .cards = 1, .share = 1000, .types = {"T4"}}));
}

TEST(Asks, WhatAClusterCannotBeAskedIsAnError) {
  EXPECT_FALSE(ask_of(request("all")));
  EXPECT_FALSE(ask_of(request("17")));
  core::Request named = request("1");
  named.devices = {"3"};
  EXPECT_FALSE(ask_of(named));
}

TEST(Asks, AskedOfAMachineItIsTheSameRequest) {
  for (const char* gpu : {"0", "2", "2x40%", "2x30G"})
    EXPECT_EQ(*request_of(*ask_of(request(gpu)), {"T4"}), request(gpu)) << gpu;
}

TEST(Asks, OfSeveralTypesTheMachineMustKnowOneOrAll) {
  const Ask ask{.cards = 1, .share = 1000, .types = {"A100", "T4"}};
  EXPECT_EQ(request_of(ask, {"T4", "V100"})->gpu_type, "T4");
  EXPECT_FALSE(request_of(ask, {"A100", "T4"})->gpu_type);
  EXPECT_FALSE(request_of(ask, {"A100", "T4", "V100"}));
}

TEST(Asks, DifferentAsksAreDifferentInLine) {
  const Ask one{.cpu_milli = 2000, .ram_mib = 1, .cards = 1, .share = 500, .types = {"A", "B"}};
  Ask other = one;
  EXPECT_EQ(line_request(one), line_request(other));
  other.cpu_milli = 1999;  // rounds up to as many CPUs
  EXPECT_NE(line_request(one), line_request(other));
  other = one;
  other.types = {"A"};
  EXPECT_NE(line_request(one), line_request(other));
}

TEST(Asks, WordsSayWhatIsAskedFor) {
  EXPECT_EQ(words_of({.cpu_milli = 2500, .ram_mib = 4096, .cards = 2, .share = 1000}),
            "--gpu 2 --cpus 2.5 --ram 4G");
  EXPECT_EQ(words_of({.cards = 1, .share = 81, .types = {"T4"}}), "--gpu 0.081 --gpu-type T4");
  EXPECT_EQ(words_of({.cards = 4, .share_mib = 1536}), "--gpu 4x1536M");
  EXPECT_EQ(words_of({.cpu_milli = 1000}), "--gpu 0 --cpus 1");
}

}  // namespace
}  // namespace mete::simulate
