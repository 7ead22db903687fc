// SPDX-License-Identifier: Apache-2.0
#include "simulate/residency.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace mete::simulate {
namespace {

constexpr std::int64_t kSecond = 1'000'000;

std::vector<SimulatedModel> models(std::size_t count, std::uint64_t gib = 20) {
  std::vector<SimulatedModel> models;
  for (std::size_t i = 0; i < count; ++i)
    models.push_back({.name = "m" + std::to_string(i), .bytes = Bytes::from_gib(gib)});
  return models;
}

ResidencyFigures figures(const std::vector<SimulatedModel>& models, std::uint64_t room_gib,
                         const std::vector<ModelRequest>& requests) {
  // 20 GiB in 0.4 s.
  const Result<ResidencyFigures> figures =
      simulate_residency(models, Bytes::from_gib(room_gib), Bytes::from_gib(50), requests);
  EXPECT_TRUE(figures.ok()) << figures.error().message;
  return *figures;
}

// All waiting at once, one model fits, answers one after another.
TEST(Residency, EightRequestsCostTwoSwaps) {
  std::vector<SimulatedModel> three = models(3);
  for (SimulatedModel& model : three) model.concurrency = 1;
  std::vector<ModelRequest> requests;
  for (const char letter : std::string("ABAACABC"))
    requests.push_back({0, static_cast<std::size_t>(letter - 'A'), kSecond / 10});
  const ResidencyFigures seen = figures(three, 20, requests);
  EXPECT_EQ(seen.requests, 8u);
  EXPECT_EQ(seen.swaps, 2u);
  // A wakes in 0.4 s; its answers end at 0.5 … 0.8; B from 1.2 on, C from 1.8 on.
  const double waits = 0.4 + 0.5 + 0.6 + 0.7 + 1.2 + 1.3 + 1.8 + 1.9;
  EXPECT_NEAR(seen.mean_wait_s, waits / 8, 1e-9);
  EXPECT_NEAR(seen.max_wait_s, 1.9, 1e-9);
  EXPECT_NEAR(seen.p99_wait_s, 1.9, 1e-9);
}

TEST(Residency, NoOneWaitsWhereAllAreResident) {
  std::vector<SimulatedModel> two = models(2);
  two[0].always = two[1].always = true;
  const ResidencyFigures seen = figures(two, 40, {{0, 0, kSecond}, {5, 1, kSecond}});
  EXPECT_EQ(seen.swaps, 0u);
  EXPECT_EQ(seen.max_wait_s, 0);
}

// A long answer is paused for another model after its slice of 4 s, and goes on.
TEST(Residency, ALongAnswerIsPausedAndGoesOn) {
  const ResidencyFigures seen =
      figures(models(2), 20, {{0, 0, 10 * kSecond}, {kSecond, 1, kSecond}});
  // Model 0: awake at 0.4, paused at 4.4. Model 1: awake at 4.8, answers until 5.8, has waited
  // 3.8 s. Model 0: back at 6.2, after 4 s of 10; it ends at 12.2 and has waited 2.2 s.
  EXPECT_EQ(seen.swaps, 2u);
  EXPECT_NEAR(seen.max_wait_s, 3.8, 0.002);
  EXPECT_NEAR(seen.mean_wait_s, (3.8 + 2.2) / 2, 0.002);
}

TEST(Residency, SaysWhatNeverFits) {
  std::vector<SimulatedModel> two = models(2);
  const auto message = [&](std::uint64_t room) {
    const Result<ResidencyFigures> done =
        simulate_residency(two, Bytes::from_gib(room), Bytes::from_gib(50), {});
    return done ? std::string("fine") : done.error().message;
  };
  EXPECT_EQ(message(19), "the model m0 never fits");
  EXPECT_EQ(message(20), "fine");
  two[0].always = true;
  EXPECT_EQ(message(39), "the model m1 never fits");
  two[1].always = true;
  EXPECT_EQ(message(39), "the models that are always resident do not fit together");
}

// 20 models, 3 fit, by Zipf's law, 4 requests a second for half an hour.
std::vector<ModelRequest> zipf(std::uint64_t seed) {
  std::uint64_t state = seed * 2 + 1;
  const auto unit = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state >> 11) / static_cast<double>(1ull << 53);
  };
  double all = 0;
  for (int k = 1; k <= 20; ++k) all += 1.0 / k;
  std::vector<ModelRequest> requests;
  double t = 0;
  while (t < 1800) {
    t += -std::log(1 - unit()) / 4;
    double rest = unit() * all;
    std::size_t model = 0;
    while (model < 19 && (rest -= 1.0 / static_cast<double>(model + 1)) > 0) ++model;
    requests.push_back({static_cast<std::int64_t>(t * 1e6), model, 3 * kSecond / 10});
  }
  return requests;
}

TEST(Residency, TwentyModelsOfWhichThreeFit) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const std::vector<ModelRequest> requests = zipf(seed);
    const ResidencyFigures seen = figures(models(20), 60, requests);
    EXPECT_EQ(seen.requests, requests.size());
    EXPECT_LE(seen.mean_wait_s, 0.9) << seed;
    EXPECT_LE(seen.max_wait_s, 6) << seed;
    RecordProperty("mean_" + std::to_string(seed), std::to_string(seen.mean_wait_s));
  }
}

TEST(ModelRequests, ReadsNamesAndAliases) {
  std::vector<SimulatedModel> two = models(2);
  two[1].aliases = {"llama", "llama-8b"};
  const auto requests =
      parse_model_requests("t_s,model,answer_s\n2,m0,0.3\n1.5,llama-8b,1\n", "T.csv", two);
  ASSERT_TRUE(requests.ok()) << requests.error().message;
  ASSERT_EQ(requests->size(), 2u);
  EXPECT_EQ((*requests)[0].at_us, 1'500'000);
  EXPECT_EQ((*requests)[0].model, 1u);
  EXPECT_EQ((*requests)[1].answer_us, 300'000);
}

TEST(ModelRequests, SaysWhatIsWrong) {
  std::vector<SimulatedModel> two = models(2);
  two[1].aliases = {"llama-8b"};
  const auto message = [&](const std::string& rows) {
    const auto read = parse_model_requests("t_s,model,answer_s\n" + rows, "T.csv", two);
    return read ? std::string("fine") : read.error().message + "; " + read.error().hint;
  };
  EXPECT_EQ(message("1,llama-8,1\n"),
            "T.csv:2: there is no model 'llama-8'; did you mean llama-8b?");
  EXPECT_EQ(message("1,m1,1\n").substr(0, 31), "T.csv:2: there is no model 'm1'");
  for (const char* time : {"x", "", "-1", "1e3", "1.", ".5", "1.x", "1.0000001x", "99999999999"})
    EXPECT_NE(message(std::string(time) + ",m0,1\n").find("t_s must be seconds"), std::string::npos)
        << time;
}

}  // namespace
}  // namespace mete::simulate
