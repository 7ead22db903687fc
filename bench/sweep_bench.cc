// SPDX-License-Identifier: Apache-2.0
// What the next point of a sweep costs: a suggestion of TPE with results, and a draw of Sobol.
#include <benchmark/benchmark.h>

#include <vector>

#include "core/sweep/sampler.h"

namespace mete::core::sweep {
namespace {

Space space_of(std::size_t ranges) {
  std::vector<Parameter> parameters;
  for (std::size_t i = 0; i < ranges; ++i) {
    Range range;
    range.min = 0.001;
    range.max = 1;
    range.log = i % 2 == 0;
    parameters.push_back({"p" + std::to_string(i), range, {}});
  }
  parameters.push_back(
      {"kind", std::vector<Value>{guess("sgd"), guess("adam"), guess("lamb")}, {}});
  return *Space::make(std::move(parameters));
}

// Results of random points, and a few trials that run.
void suggest_with_results(benchmark::State& state) {
  const Space space = space_of(static_cast<std::size_t>(state.range(1)));
  const Sampling random{Method::kRandom, 7, 0, false};
  std::vector<Scored> scored;
  std::vector<Point> running;
  for (std::uint64_t n = 0; n < static_cast<std::uint64_t>(state.range(0)) + 8; ++n) {
    const Point point = *draw(space, random, n);
    double loss = 0;
    for (const auto& value : point)
      if (value && value->kind == Value::Kind::kReal)
        loss += (value->number - 0.3) * (value->number - 0.3);
    if (n < 8)
      running.push_back(point);
    else
      scored.push_back({point, loss});
  }
  std::uint64_t n = 1'000;
  for (auto _ : state) benchmark::DoNotOptimize(suggest(space, 7, ++n, scored, running));
}
BENCHMARK(suggest_with_results)
    ->Args({1'000, 4})
    ->Args({1'000, 16})
    ->Args({10'000, 4})
    ->Unit(benchmark::kMillisecond);

void draw_of_sobol(benchmark::State& state) {
  const Space space = space_of(16);
  std::uint64_t n = 0;
  for (auto _ : state) benchmark::DoNotOptimize(draw(space, {Method::kSobol, {}, 0, false}, ++n));
}
BENCHMARK(draw_of_sobol);

}  // namespace
}  // namespace mete::core::sweep
