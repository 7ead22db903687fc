// SPDX-License-Identifier: Apache-2.0
// See replay.h.
#include "simulate/replay.h"

#include <cmath>

#include "core/cluster/fragmentation.h"

namespace mete::simulate {

using namespace core::cluster;

namespace {

constexpr std::size_t kProgressStep = 1000;
// A learned mix is renewed when it has grown by an eighth: often at first, then ever more rarely,
// so that what policies remember is of use.
constexpr std::size_t kFirstLesson = 32;

struct World {
  Cluster cluster;
  std::vector<KindId> kinds;  // of each job
};

Result<World> make_world(const Trace& trace) {
  Result<Cluster> cluster = Cluster::make(trace.nodes, trace.ranks);
  if (!cluster) return cluster.error();
  World world{std::move(*cluster), {}};
  world.kinds.reserve(trace.jobs.size());
  for (const TraceJob& job : trace.jobs) {
    const Result<KindId> kind = world.cluster.kind_of(job.ask);
    if (!kind) return Error(kind.error()).within("job " + job.name);
    world.kinds.push_back(*kind);
  }
  return world;
}

Mix as_mix(const std::vector<std::uint64_t>& counts) {
  Mix mix;
  for (std::uint32_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0) mix.push_back({KindId{i}, counts[i]});
  return mix;
}

Mix mix_of_jobs(const World& world) {
  std::vector<std::uint64_t> counts(world.cluster.kinds());
  for (const KindId kind : world.kinds) ++counts[index_of(kind)];
  return as_mix(counts);
}

std::string class_of(const Ask& ask) {
  if (ask.cards == 0) return "cpu";
  if (ask.share < kWholeCard) return "share";
  return std::to_string(ask.cards) + "gpu";
}

// A mean over the arrivals at one level of demand.
struct Level {
  std::uint64_t count = 0;
  double alloc = 0;
  double frag = 0;
};

}  // namespace

Result<Replay> replay(const Trace& trace, Policy& policy, MixFrom from, const Hooks& hooks) {
  Result<World> world = make_world(trace);
  if (!world) return world.error();
  Cluster& cluster = world->cluster;
  policy.expect(cluster, from == MixFrom::kJobs ? mix_of_jobs(*world) : Mix{});
  std::vector<std::uint64_t> seen(cluster.kinds());
  std::size_t lesson = kFirstLesson;
  Replay result;
  result.spots.reserve(trace.arrivals.size());
  for (std::size_t i = 0; i < trace.arrivals.size(); ++i) {
    if (hooks.progress && i % kProgressStep == 0) hooks.progress(i, trace.arrivals.size());
    const KindId kind = world->kinds[trace.arrivals[i]];
    const std::uint64_t began = hooks.now_ns ? hooks.now_ns() : 0;
    if (from == MixFrom::kLearned) {
      ++seen[index_of(kind)];
      if (i + 1 >= lesson) {
        policy.expect(cluster, as_mix(seen));
        lesson += lesson / 8;
      }
    }
    std::optional<Spot> spot = policy.choose(cluster, kind);
    if (spot) cluster.take(kind, *spot);
    if (hooks.now_ns) {
      const std::uint64_t took = hooks.now_ns() - began;
      result.times_ns.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(took, ~0u)));
    }
    result.spots.push_back(std::move(spot));
  }
  if (hooks.progress) hooks.progress(trace.arrivals.size(), trace.arrivals.size());
  return result;
}

Result<Score> score(const Trace& trace, const Replay& replay) {
  Result<World> world = make_world(trace);
  if (!world) return world.error();
  Cluster& cluster = world->cluster;
  const Fragmentation fragmentation(cluster, mix_of_jobs(*world));
  const double percent =
      cluster.capacity() > 0 ? 100.0 / static_cast<double>(cluster.capacity()) : 0;
  double fragmented = 0;
  for (const Node& node : cluster.nodes()) fragmented += fragmentation.of(cluster.shape(node.cls));
  Score score;
  score.cards = static_cast<std::uint64_t>(cluster.capacity() / kWholeCard);
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> counts;  // accepted, of all
  std::map<long, Level> levels;
  std::int64_t asked = 0;
  for (std::size_t i = 0; i < replay.spots.size(); ++i) {
    const KindId kind = world->kinds[trace.arrivals[i]];
    const Ask& ask = cluster.kind(kind).ask;
    asked += ask.total_share();
    auto& [accepted, all] = counts[class_of(ask)];
    ++all;
    if (const std::optional<Spot>& spot = replay.spots[i]) {
      fragmented -= fragmentation.of(cluster.shape(cluster.node(spot->node).cls));
      cluster.take(kind, *spot);
      fragmented += fragmentation.of(cluster.shape(cluster.node(spot->node).cls));
      ++accepted;
    } else {
      ++score.rejected;
      if (!score.first_reject_at) score.first_reject_at = percent * static_cast<double>(asked);
    }
    Level& level = levels[std::lrint(percent * static_cast<double>(asked))];
    ++level.count;
    level.alloc += percent * static_cast<double>(cluster.capacity() - cluster.idle());
    level.frag += percent * fragmented;
  }
  score.final_alloc = percent * static_cast<double>(cluster.capacity() - cluster.idle());
  for (const auto& [name, count] : counts)
    score.accepted_pct[name] =
        100.0 * static_cast<double>(count.first) / static_cast<double>(count.second);
  const auto at = [&](long percents, double Level::*sum) -> std::optional<double> {
    const auto level = levels.find(percents);
    if (level == levels.end()) return std::nullopt;
    return level->second.*sum / static_cast<double>(level->second.count);
  };
  score.alloc100 = at(100, &Level::alloc);
  score.alloc130 = at(130, &Level::alloc);
  score.frag100 = at(100, &Level::frag);
  score.frag130 = at(130, &Level::frag);
  return score;
}

std::string decisions_csv(const Replay& replay) {
  std::string text;
  for (std::size_t i = 0; i < replay.spots.size(); ++i) {
    text += std::to_string(i);
    if (const std::optional<Spot>& spot = replay.spots[i]) {
      text += "," + std::to_string(index_of(spot->node)) + ",";
      for (std::size_t c = 0; c < spot->count; ++c)
        text += (c == 0 ? "" : "-") + std::to_string(spot->cards[c]);
    } else {
      text += ",-1,";
    }
    text += "\n";
  }
  return text;
}

}  // namespace mete::simulate
