// SPDX-License-Identifier: Apache-2.0
// The cost of one pass over the queue: a number of pending jobs of ten users on eight cards that
// are nearly full, of a number of kinds. Plain; with --time; with names whose durations are known;
// with quotas; with a reservation; while an empty card is held for the first job in the queue,
// which all others would like to have; and while all jobs wait for a card that is lost.
#include <benchmark/benchmark.h>

#include <string>

#include "core/job/state.h"

namespace mete::core {
namespace {

constexpr std::uint64_t kCards = 8;
constexpr WallTime kNow{1'800'000'000'000};

enum Extra { kPlain, kTimes, kLearned, kQuotas, kReserved, kHeldCard, kLostCard };

Pool machine() {
  Pool pool;
  for (std::uint32_t i = 0; i < kCards; ++i) {
    PoolCard card;
    card.card = {i, "GPU-" + std::to_string(i), "H200", Bytes::from_gib(140)};
    pool.cards.push_back(card);
  }
  return pool;
}

class Line {
 public:
  Line(std::uint64_t jobs, std::uint64_t kinds, Extra extra) : extra_(extra) {
    for (std::uint32_t i = 0; i < kCards * 4; ++i)
      if (extra != kHeldCard || i % kCards != 0) occupy(i);
    if (extra == kLearned) learn();
    if (extra == kHeldCard) {
      JobSpec first = spec(0);
      first.priority = 1;
      first.request.gpu = whole_cards(kCards);
      apply(JobSubmitted{JobId{++last_}, std::move(first), {}});
    }
    machine_.cards[0].lost = extra == kLostCard;
    if (extra == kReserved)
      apply(Reserved{{1,
                      "carol",
                      {kNow.ms + 3'600'000},
                      {kNow.ms + 7'200'000},
                      {{0, "GPU-0", Bytes::from_gib(140), true}},
                      "root"}});
    if (extra == kQuotas) {
      Quota quota;
      quota.cards = 100;
      quota.bytes = Bytes::from_gib(1000);
      apply(QuotaSet{"", quota});
    }
    for (std::uint64_t i = 0; i < jobs; ++i) submit(i, i % kinds);
  }

  std::size_t walk() const { return state_.grants({machine_, Policy::kBestFit, kNow}).size(); }

 private:
  void apply(Happened what) { state_.apply({state_.last_seq() + 1, kNow, std::move(what)}); }

  JobSpec spec(std::uint64_t user) const {
    JobSpec spec;
    spec.user = "user" + std::to_string(user);
    spec.uid = static_cast<std::uint32_t>(1000 + user);
    spec.detached = Detached{};
    return spec;
  }
  static std::string name_of(std::uint64_t kind) { return "train-" + std::to_string(kind); }
  // Durations of jobs for as many names as are kept.
  void learn() {
    for (std::uint64_t i = 0; i < 5 * Estimates::kKinds; ++i) {
      JobSpec job = spec(i % 10);
      job.name = name_of(i / 5);
      job.request.gpu = no_gpu();
      const JobId id{++last_};
      apply(JobSubmitted{id, std::move(job), {}});
      apply(JobGranted{id, {}});
      apply(JobStarted{id, {1, 1}});
      Exit exit;
      exit.ran_ms = 1000 * (i % 100);
      apply(JobEnded{id, Outcome::kOk, exit});
    }
  }
  void submit(std::uint64_t number, std::uint64_t kind) {
    JobSpec job = spec(number % 10);
    job.request.gpu = GpuRequest{{CardCount::Kind::kOne, 0},
                                 Size{Bytes::from_gib(30) + Bytes::from_mib(2 * kind)}};
    job.name = extra_ == kLearned ? name_of(kind) : "job";
    if (extra_ == kTimes || extra_ == kHeldCard) job.time_s = 36'000 + kind;
    if (extra_ == kLostCard) job.request.gpu->cards = {CardCount::Kind::kNumber, kCards};
    apply(JobSubmitted{JobId{++last_}, std::move(job), {}});
  }
  // Four jobs on each card leave less than the smallest needs.
  void occupy(std::uint32_t i) {
    const std::uint32_t card = i % kCards;
    JobSpec job = spec(i % 10);
    job.request.gpu = GpuRequest{{CardCount::Kind::kOne, 0}, Size{Bytes::from_gib(30)}};
    job.time_s = 3600 + 60 * i;
    const JobId id{++last_};
    apply(JobSubmitted{id, std::move(job), {}});
    apply(JobGranted{id, {{card, "GPU-" + std::to_string(card), Bytes::from_gib(30), false}}});
    apply(JobStarted{id, {static_cast<std::int32_t>(i + 1), 1}});
  }

  Extra extra_;
  Pool machine_ = machine();
  State state_;
  std::uint64_t last_ = 0;
};

void walk(benchmark::State& state, std::uint64_t kinds, Extra extra) {
  const auto jobs = static_cast<std::uint64_t>(state.range(0));
  const Line line(jobs, kinds == 0 ? jobs : kinds, extra);
  for ([[maybe_unused]] auto turn : state) benchmark::DoNotOptimize(line.walk());
  state.SetComplexityN(state.range(0));
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->Arg(1'000)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond)->Complexity();
}

BENCHMARK_CAPTURE(walk, same_kind, 1, kPlain)->Apply(sizes);
BENCHMARK_CAPTURE(walk, hundred_kinds, 100, kPlain)->Apply(sizes);
BENCHMARK_CAPTURE(walk, all_different, 0, kPlain)->Apply(sizes);
BENCHMARK_CAPTURE(walk, all_different_with_times, 0, kTimes)->Apply(sizes);
BENCHMARK_CAPTURE(walk, all_different_by_name, 0, kLearned)->Apply(sizes);
BENCHMARK_CAPTURE(walk, all_different_with_quotas, 0, kQuotas)->Apply(sizes);
BENCHMARK_CAPTURE(walk, all_different_reserved, 0, kReserved)->Apply(sizes);
BENCHMARK_CAPTURE(walk, all_different_held_card, 0, kHeldCard)->Apply(sizes);
BENCHMARK_CAPTURE(walk, all_different_lost_card, 0, kLostCard)->Apply(sizes);

}  // namespace
}  // namespace mete::core
