// SPDX-License-Identifier: Apache-2.0
// See scenes.h. Every figure follows from the numbers of cards and jobs, without randomness, so
// that the files of tests/data/top do not change. Every third job waits; the last of several cards
// has foreign memory and a job of another user; with more than two cards, the second one lacks half
// of its readings.
#include "top/test/scenes.h"

#include <array>
#include <string>

namespace mete::top {

namespace {

using wire::CardView;
using wire::Snapshot;

constexpr WallTime kNow{1'794'000'000'000};  // 2026-11-06T21:20:00Z

std::string uuid_of(std::size_t card) { return "GPU-" + std::to_string(card); }

// Begins after a while, stays near a level of its own, and drops now and then, like a program that
// writes a checkpoint.
wire::Series series(std::size_t seed, std::uint32_t most) {
  wire::Series series;
  series.step_s = 5;
  series.last_at = kNow;
  const std::size_t level = 25 + seed * 37 % 70;
  std::uint32_t noise = static_cast<std::uint32_t>(seed) * 2'654'435'761u + 1;
  for (std::size_t i = 0; i < wire::kPastSteps; ++i) {
    noise = noise * 1'664'525u + 1'013'904'223u;
    const bool falls = (i + seed * 7) % 31 < 3;
    const std::size_t height = falls ? level / 5 : level + (noise >> 16) % 6;
    if (i < 12 + seed * 5 % 30)
      series.values.emplace_back();
    else
      series.values.emplace_back(static_cast<std::uint32_t>(most * height / 100));
  }
  return series;
}

std::string name_of(std::size_t i, bool wide) {
  constexpr std::array kPlain{"train", "notebook", "eval-checkpoints", "sweep-lr", "llm-serve"};
  constexpr std::array kWide{"模型训练", "노트북", "🚀launch🚀", "e\u0301tude", "👩\u200d🔬lab"};
  return wide ? kWide[i % kWide.size()] : kPlain[i % kPlain.size()];
}

Snapshot::Job make_job(std::size_t i, const SceneSize& size) {
  constexpr std::array kUsers{"alice", "bob", "carol"};
  core::JobSpec spec;
  spec.name = name_of(i, size.wide);
  spec.user = kUsers[i % kUsers.size()];
  spec.command = {"python", "-m", name_of(i, size.wide), "--seed", std::to_string(i)};
  spec.folder = "/home/" + spec.user + "/project";
  Snapshot::Job job;
  core::Job& known = job.view.job;
  known.id = {12 + i};
  known.submitted = WallTime{kNow.ms - static_cast<std::int64_t>(3'600'000 + i * 61'000)};
  known.spec = spec;
  return job;
}

void make_running(Snapshot& snapshot, Snapshot::Job& job, std::size_t i) {
  core::Job& known = job.view.job;
  CardView& card = snapshot.cards[i % snapshot.cards.size()];
  const Bytes bytes = Bytes::from_mib(9'000 + (i * 7'919) % 24'000);
  const Bytes used = Bytes::from_mib(4'000 + (i * 3'571) % 5'000);
  if (card.grantable < bytes) return;
  known.state = core::JobState::kRunning;
  known.started = WallTime{known.submitted.ms + 30'000};
  known.grant = {{card.index, card.uuid, bytes, false}};
  job.view.used = {used};
  job.peaks = {used + Bytes::from_gib(1)};
  job.utilisation_pct = static_cast<unsigned>(i * 37 % 101);
  const auto pid = static_cast<std::int32_t>(4'000 + i * 10);
  job.processes = {{pid, 99, 0, {}, "sh", {}, {}},
                   {pid + 1, 99, pid, {}, "torchrun", {}, {}},
                   {pid + 2, 99, pid + 1, card.index, "python", used, job.utilisation_pct},
                   {pid + 3, 99, pid + 2, {}, "pt_data_worker", {}, {}},
                   {pid + 4, 99, pid + 1, card.index, "python", {}, {}}};
  if (i % 5 == 1) job.view.idle_since = WallTime{kNow.ms - 3 * 3'600'000};
  if (i % 7 == 4) {
    known.state = core::JobState::kParked;
    known.park.emplace();
    known.park->cause = core::ParkCause::kPreempted;
    known.park->for_job = core::JobId{99};
    known.park->held = {Bytes::from_mib(580)};
    known.park->moved = Bytes::from_gib(7);
  }
  card.jobs.push_back({to_string(known.id), known.spec->user, bytes, false, used});
  card.granted += bytes;
  card.grantable -= bytes;
  card.used = *card.used + used;
  snapshot.history->jobs[known.id] = {{series(i, 100)}, {series(i + 3, 16'000)}};
}

void make_waiting(Snapshot& snapshot, Snapshot::Job& job) {
  core::Job& known = job.view.job;
  core::Wait wait;
  wait.words = "55.9 GiB on each of 4 cards; the most that is free on one is 12.3 GiB";
  job.view.wait = wait;
  job.view.forecast = {kNow, WallTime{kNow.ms + 1'500'000}, WallTime{kNow.ms + 3'000'000}};
  snapshot.queue.order.push_back({known.id, snapshot.queue.order.size() + 1});
  ++snapshot.queue.depth["resources"];
}

CardView make_card(std::size_t i) {
  CardView card;
  card.index = static_cast<std::uint32_t>(i);
  card.uuid = uuid_of(i);
  card.name = "NVIDIA H200";
  card.type = "H200";
  card.total = Bytes::from_mib(143'771);
  card.capacity = Bytes::from_mib(143'155);
  card.grantable = *card.capacity;
  card.used = Bytes();
  card.utilisation_pct = static_cast<unsigned>(i * 29 % 101);
  card.temperature_c = static_cast<int>(38 + i * 7 % 50);
  card.power_w = 90.0 + static_cast<double>(i * 67 % 600);
  card.power_limit_w = 700;
  card.reading_age_s = 0.2;
  return card;
}

}  // namespace

Snapshot make_snapshot(const SceneSize& size) {
  Snapshot snapshot;
  snapshot.at = kNow;
  snapshot.driver = "570.86.10";
  snapshot.history.emplace();
  for (std::size_t i = 0; i < size.cards; ++i) {
    snapshot.cards.push_back(make_card(i));
    snapshot.history->cards[uuid_of(i)] = {{series(i, 100)}, {series(i + 1, 143'771)}};
  }
  if (size.cards > 1) {
    CardView& last = snapshot.cards.back();
    last.foreign = Bytes::from_gib(9);
    last.grantable -= *last.foreign;
    last.used = *last.foreign;
    last.foreign_list = {{3'141, "dave", *last.foreign, "python3", 40}};
    last.jobs.push_back({"7", "erin", Bytes::from_gib(4), false, Bytes::from_gib(1)});
    last.granted += Bytes::from_gib(4);
    last.grantable -= Bytes::from_gib(4);
  }
  if (size.cards > 2) {  // half of the readings are missing
    CardView& card = snapshot.cards[1];
    card.temperature_c.reset();
    card.power_w.reset();
    card.utilisation_pct.reset();
  }
  for (std::size_t i = 0; i < size.jobs; ++i) {
    Snapshot::Job job = make_job(i, size);
    if (i % 3 != 2 && !snapshot.cards.empty()) make_running(snapshot, job, i);
    if (job.view.job.state == core::JobState::kPending) make_waiting(snapshot, job);
    snapshot.jobs.push_back(std::move(job));
  }
  return snapshot;
}

}  // namespace mete::top
