// SPDX-License-Identifier: Apache-2.0
// The cost of documents with ten thousand pending jobs: `mete ps` as JSON and in lines, the
// snapshot, and one submit with an environment of 60 variables.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "base/content_hash.h"
#include "wire/ps_lines.h"
#include "wire/state.h"
#include "wire/submit.h"

namespace mete::wire {
namespace {

constexpr std::uint64_t kJobs = 10'000;
constexpr WallTime kNow{1'794'733'200'000};

core::JobSpec spec(std::uint64_t number) {
  core::JobSpec spec;
  spec.name = "train-" + std::to_string(number);
  spec.uid = 1000;
  spec.user = "alice";
  spec.request.gpu = *core::parse_gpu("8G");
  spec.command = {"python", "train.py", "--learning-rate",
                  "0.001",  "--seed",   std::to_string(number)};
  spec.folder = "/home/alice/experiments";
  spec.detached.emplace();
  spec.detached->environment = std::string(64, 'a');
  spec.detached->groups = {4, 24, 27, 1000};
  for (std::int32_t i = 0; i < 16; ++i)
    spec.detached->limits.push_back({i, UINT64_MAX, UINT64_MAX});
  return spec;
}

core::Wait two_cards() {
  core::Wait wait;
  wait.holders = {core::JobId{12}, core::JobId{14}};
  wait.room.needs = core::CardNeed{1, *core::parse_gpu("8G"), Bytes::from_gib(8), {}, 0};
  core::CardWait card;
  card.why = core::InTheWay::kTooFull;
  card.needed = Bytes::from_gib(8);
  card.free = Bytes::from_mib(3277);
  card.holders = {{{12}, "alice", "train", Bytes::from_mib(57242)}};
  wait.room.cards.push_back(card);
  card.index = 1;
  card.why = core::InTheWay::kHeldWhole;
  card.holders = {{{14}, "bob", "serve", Bytes::from_gib(139), true}};
  wait.room.cards.push_back(card);
  return wait;
}

std::vector<JobView> pending() {
  std::vector<JobView> views(kJobs);
  const core::SharedWait wait = two_cards();  // as equal jobs have it
  for (std::uint64_t i = 0; i < kJobs; ++i) {
    core::Job& job = views[i].job;
    job.id = {i + 1};
    job.spec = spec(i);
    job.submitted = {kNow.ms + static_cast<std::int64_t>(i)};
    views[i].wait = wait;
  }
  return views;
}

void set_size(benchmark::State& state, const std::string& text) {
  state.counters["MB"] = static_cast<double>(text.size()) / 1e6;
}

void ps_json_write(benchmark::State& state) {
  const std::vector<JobView> views = pending();
  for ([[maybe_unused]] auto turn : state) benchmark::DoNotOptimize(encode_ps(views, kNow));
  set_size(state, encode_ps(views, kNow));
}
BENCHMARK(ps_json_write)->Unit(benchmark::kMillisecond);

void ps_json_read(benchmark::State& state) {
  const std::string text = encode_ps(pending(), kNow);
  for ([[maybe_unused]] auto turn : state) METE_ASSERT(decode_ps(text).ok());
}
BENCHMARK(ps_json_read)->Unit(benchmark::kMillisecond);

void ps_lines_write(benchmark::State& state) {
  const std::vector<JobView> views = pending();
  for ([[maybe_unused]] auto turn : state) benchmark::DoNotOptimize(encode_ps_lines(views, kNow));
  set_size(state, encode_ps_lines(views, kNow));
}
BENCHMARK(ps_lines_write)->Unit(benchmark::kMillisecond);

void ps_lines_read(benchmark::State& state) {
  const std::string text = encode_ps_lines(pending(), kNow);
  for ([[maybe_unused]] auto turn : state) METE_ASSERT(decode_ps_lines(text).ok());
}
BENCHMARK(ps_lines_read)->Unit(benchmark::kMillisecond);

core::State::Parts snapshot(bool array) {
  core::State::Parts parts;
  parts.last_job = kJobs;
  for (JobView& view : pending()) {
    if (array) view.job.id = {1, static_cast<std::uint32_t>(view.job.id.number)};
    if (array && !parts.jobs.empty()) view.job.spec = parts.jobs.front().spec;
    parts.jobs.push_back(std::move(view.job));
  }
  return parts;
}

void snapshot_write(benchmark::State& state) {
  const core::State::Parts parts = snapshot(state.range(0) != 0);
  for ([[maybe_unused]] auto turn : state) benchmark::DoNotOptimize(encode(parts));
  set_size(state, encode(parts));
}
BENCHMARK(snapshot_write)->ArgName("array")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void snapshot_read(benchmark::State& state) {
  const std::string text = encode(snapshot(state.range(0) != 0));
  for ([[maybe_unused]] auto turn : state) METE_ASSERT(decode_parts(text).ok());
}
BENCHMARK(snapshot_read)->ArgName("array")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

SubmitRequest submit() {
  SubmitRequest request{spec(1), {}, "", true};
  for (int i = 0; i < 60; ++i)
    request.environment.push_back("VARIABLE_" + std::to_string(i) +
                                  "=/usr/local/lib/some/path:" + std::string(40, 'x'));
  return request;
}

void submit_write(benchmark::State& state) {
  const SubmitRequest request = submit();
  for ([[maybe_unused]] auto turn : state) benchmark::DoNotOptimize(encode(request));
}
BENCHMARK(submit_write)->Unit(benchmark::kMicrosecond);

void submit_read(benchmark::State& state) {
  const std::string text = encode(submit());
  for ([[maybe_unused]] auto turn : state) METE_ASSERT(decode_job_request(text).ok());
  set_size(state, text);
}
BENCHMARK(submit_read)->Unit(benchmark::kMicrosecond);

void environment_hash(benchmark::State& state) {
  const std::string blob(5'000, 'x');
  for ([[maybe_unused]] auto turn : state) benchmark::DoNotOptimize(base::content_hash(blob));
}
BENCHMARK(environment_hash)->Unit(benchmark::kMicrosecond);

void event_write(benchmark::State& state) {
  const core::Happened what = core::JobSubmitted{{12}, spec(12), {}};
  for ([[maybe_unused]] auto turn : state) benchmark::DoNotOptimize(encode(what));
}
BENCHMARK(event_write)->Unit(benchmark::kMicrosecond);

void event_read(benchmark::State& state) {
  const std::string text = encode(core::Happened(core::JobSubmitted{{12}, spec(12), {}}));
  for ([[maybe_unused]] auto turn : state) METE_ASSERT(decode_event("job.submitted", text).ok());
}
BENCHMARK(event_read)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace mete::wire
