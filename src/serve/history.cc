// SPDX-License-Identifier: Apache-2.0
#include "serve/history.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace mete::serve {

namespace {

constexpr std::int64_t kMost = wire::kPastSteps;

std::uint32_t in_mib(Bytes bytes) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(bytes.count() >> 20, std::numeric_limits<std::uint32_t>::max()));
}

void push(std::vector<std::optional<std::uint32_t>>& values, std::optional<std::uint32_t> value) {
  if (values.size() == static_cast<std::size_t>(kMost)) values.erase(values.begin());
  values.push_back(value);
}

std::int64_t length_ns(std::size_t length) {
  return std::int64_t{wire::kPastStepS[length]} * 1'000'000'000;
}

}  // namespace

void History::Track::add(std::uint32_t value) {
  for (Step& step : open) {
    step.sum += value;
    step.most = std::max(step.most, value);
    ++step.count;
  }
}

// Closes the open step, and `missed` steps after it without a reading.
void History::end_step(Pair& pair, std::size_t length, std::int64_t missed) {
  const auto end = [&](Track& track, bool mean) {
    const Track::Step step = std::exchange(track.open[length], {});
    std::optional<std::uint32_t> value;
    if (step.count != 0)
      value =
          mean ? static_cast<std::uint32_t>((step.sum + step.count / 2) / step.count) : step.most;
    push(track.closed[length], value);
    for (std::int64_t i = 0; i < std::min(missed, kMost); ++i)
      push(track.closed[length], std::nullopt);
  };
  end(pair.utilisation, true);
  end(pair.used, false);
}

void History::end_steps(seam::Nanoseconds at, WallTime wall) {
  for (std::size_t length = 0; length < kLengths; ++length) {
    const std::int64_t number = at.count() / length_ns(length);
    const std::int64_t ended = number - step_[length];
    if (ended <= 0) continue;
    for (auto& [uuid, pair] : cards_) end_step(pair, length, ended - 1);
    for (auto& [id, job] : jobs_) end_step(job.tracks, length, ended - 1);
    step_[length] = number;
    last_at_[length] = WallTime{wall.ms - (at.count() - number * length_ns(length)) / 1'000'000};
    ++version_;
  }
}

void History::see(seam::Nanoseconds at, WallTime wall,
                  const std::map<std::string, CardFigures>& cards,
                  const std::map<core::JobId, JobFigures>& jobs) {
  std::erase_if(jobs_, [&](const auto& known) { return !jobs.contains(known.first); });
  if (at_ && at <= *at_) return;
  if (!at_)
    for (std::size_t length = 0; length < kLengths; ++length)
      step_[length] = at.count() / length_ns(length);
  else
    end_steps(at, wall);
  at_ = at;
  const auto add = [](Pair& pair, std::optional<unsigned> utilisation, std::optional<Bytes> used) {
    if (utilisation) pair.utilisation.add(*utilisation);
    if (used) pair.used.add(in_mib(*used));
  };
  for (const auto& [uuid, figures] : cards)
    add(cards_[uuid], figures.utilisation_pct, figures.used);
  for (const auto& [id, figures] : jobs) {
    if (!jobs_.contains(id) && jobs_.size() >= kMostJobs) continue;
    OfJob& job = jobs_[id];
    if (std::exchange(job.attempt, figures.attempt) != figures.attempt) job.peaks.clear();
    std::optional<Bytes> used;
    for (const auto& [uuid, bytes] : figures.used) used = used.value_or(Bytes()) + bytes;
    for (const auto* told : {&figures.used, &figures.peaks})
      for (const auto& [uuid, bytes] : *told) job.peaks[uuid] = std::max(job.peaks[uuid], bytes);
    add(job.tracks, figures.utilisation_pct, used);
  }
}

wire::Past History::past_of(const Pair& pair) const {
  wire::Past past;
  for (std::size_t length = 0; length < kLengths; ++length) {
    if (pair.used.closed[length].empty()) continue;  // no step is closed yet
    past.utilisation_pct.push_back(
        {wire::kPastStepS[length], last_at_[length], pair.utilisation.closed[length]});
    past.used_mib.push_back({wire::kPastStepS[length], last_at_[length], pair.used.closed[length]});
  }
  return past;
}

wire::History History::shown(const std::function<bool(core::JobId)>& may_see) const {
  wire::History history;
  for (const auto& [uuid, pair] : cards_) history.cards.emplace(uuid, past_of(pair));
  for (const auto& [id, job] : jobs_)
    if (may_see(id)) history.jobs.emplace(id, past_of(job.tracks));
  return history;
}

std::optional<Bytes> History::peak(core::JobId id, std::uint32_t attempt,
                                   const std::string& uuid) const {
  const auto job = jobs_.find(id);
  if (job == jobs_.end() || job->second.attempt != attempt) return std::nullopt;
  const auto peak = job->second.peaks.find(uuid);
  return peak == job->second.peaks.end() ? std::nullopt : std::optional(peak->second);
}

}  // namespace mete::serve
