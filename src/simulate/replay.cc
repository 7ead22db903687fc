// SPDX-License-Identifier: Apache-2.0
// See replay.h. replay() asks the policy for each arrival and takes the place on the cluster; a
// refused one may trigger moves (moves.h). score() replays the decisions without the policy and
// measures allocation, fragmentation and acceptance after each arrival.
#include "simulate/replay.h"

#include <algorithm>
#include <cmath>

#include "core/cluster/fragmentation.h"

namespace mete::simulate {

using namespace core::cluster;

namespace {

constexpr std::size_t kProgressStep = 1000;
// A learned mix is renewed when it has grown by an eighth: often at first, then less and less, so
// that cached results of policies stay useful.
constexpr std::size_t kFirstLesson = 32;
// Moving interrupts jobs: no more is moved than is gained by it.
constexpr std::int64_t kWorth = 1;

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

// Moves jobs if necessary and worthwhile.
std::optional<Spot> make_room(Cluster& cluster, NodePolicy& policy, KindId kind,
                              std::uint32_t arrival, Tenants& tenants, MoveLimit& limit,
                              Replay& result) {
  const std::int64_t worth = cluster.kind(kind).ask.total_share() / kWorth;
  const std::optional<Plan> plan =
      tenants.make_room(cluster, policy, kind, arrival, {std::min(limit.share, worth), limit.jobs});
  if (!plan) return std::nullopt;
  for (const Move& move : plan->moves) result.moves.emplace_back(arrival, move);
  limit.share -= plan->moved;
  limit.jobs -= plan->moves.size();
  return plan->spot;
}

// A mean over the arrivals at one level of demand.
struct Level {
  std::uint64_t count = 0;
  double alloc = 0;
  double frag = 0;
};

}  // namespace

std::string class_of(const Ask& ask) {
  if (ask.cards == 0) return "cpu";
  if (ask.share < kWholeCard) return "share";
  return std::to_string(ask.cards) + "gpu";
}

Result<Replay> replay(const Trace& trace, NodePolicy& policy, MixFrom from, const Hooks& hooks,
                      MoveLimit limit) {
  Result<World> world = make_world(trace);
  if (!world) return world.error();
  Cluster& cluster = world->cluster;
  policy.expect(cluster, from == MixFrom::kJobs ? mix_of_jobs(*world) : Mix{});
  std::vector<std::uint64_t> seen(cluster.kinds());
  std::size_t lesson = kFirstLesson;
  Tenants tenants(cluster.nodes().size());
  Replay result;
  result.spots.reserve(trace.arrivals.size());
  const std::uint64_t cpu_began = hooks.cpu_ns ? hooks.cpu_ns() : 0;
  for (std::size_t i = 0; i < trace.arrivals.size(); ++i) {
    if (hooks.progress && i % kProgressStep == 0 && !hooks.progress(i, trace.arrivals.size()))
      return Error::busy("stopped");
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
    if (spot) {
      cluster.take(kind, *spot);
      if (limit.jobs > 0) tenants.add({static_cast<std::uint32_t>(i), kind, *spot});
    } else if (limit.jobs > 0) {
      spot =
          make_room(cluster, policy, kind, static_cast<std::uint32_t>(i), tenants, limit, result);
    }
    if (hooks.now_ns) {
      const std::uint64_t took = hooks.now_ns() - began;
      result.times_ns.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(took, ~0u)));
    }
    result.spots.push_back(std::move(spot));
  }
  if (hooks.cpu_ns) result.cpu_ns = hooks.cpu_ns() - cpu_began;
  if (hooks.progress) (void)hooks.progress(trace.arrivals.size(), trace.arrivals.size());
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
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> counts;  // accepted, total
  std::map<long, Level> levels;
  std::int64_t asked = 0;
  std::vector<std::optional<Spot>> where = replay.spots;
  std::size_t moved = 0;
  const auto change = [&](auto&& what, NodeId node) {
    fragmented -= fragmentation.of(cluster.shape(cluster.node(node).cls));
    what();
    fragmented += fragmentation.of(cluster.shape(cluster.node(node).cls));
  };
  for (std::size_t i = 0; i < replay.spots.size(); ++i) {
    for (; moved < replay.moves.size() && replay.moves[moved].first == i; ++moved) {
      const Move& move = replay.moves[moved].second;
      const KindId who = world->kinds[trace.arrivals[move.arrival]];
      Spot& spot = *where[move.arrival];
      change([&] { cluster.give_back(who, spot); }, spot.node);
      spot = move.to;
      change([&] { cluster.take(who, spot); }, spot.node);
      ++score.moves;
      score.moved_gpu += static_cast<double>(cluster.kind(who).ask.total_share()) / kWholeCard;
    }
    const KindId kind = world->kinds[trace.arrivals[i]];
    const Ask& ask = cluster.kind(kind).ask;
    asked += ask.total_share();
    auto& [accepted, all] = counts[class_of(ask)];
    ++all;
    if (const std::optional<Spot>& spot = replay.spots[i]) {
      change([&] { cluster.take(kind, *spot); }, spot->node);
      ++accepted;
    } else {
      ++score.rejected;
      if (!score.first_reject_at) score.first_reject_at = percent * static_cast<double>(asked);
    }
    const Score::Point point{percent * static_cast<double>(asked),
                             percent * static_cast<double>(cluster.capacity() - cluster.idle()),
                             percent * fragmented};
    Level& level = levels[std::lrint(point.asked)];
    ++level.count;
    level.alloc += point.alloc;
    level.frag += point.frag;
    score.curve.push_back(point);
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

namespace {

std::string spot_text(const Spot& spot, const std::vector<std::uint32_t>& rows) {
  const std::size_t node = index_of(spot.node);
  std::string text = std::to_string(rows.empty() ? node : rows[node]) + ",";
  for (std::size_t c = 0; c < spot.count; ++c)
    text += (c == 0 ? "" : "-") + std::to_string(spot.cards[c]);
  return text;
}

}  // namespace

std::string decisions_csv(const Replay& replay, const std::vector<std::uint32_t>& rows) {
  std::string text;
  std::size_t moved = 0;
  for (std::size_t i = 0; i < replay.spots.size(); ++i) {
    for (; moved < replay.moves.size() && replay.moves[moved].first == i; ++moved) {
      const Move& move = replay.moves[moved].second;
      text += "m," + std::to_string(move.arrival) + "," + spot_text(move.to, rows) + "\n";
    }
    text += std::to_string(i) + "," +
            (replay.spots[i] ? spot_text(*replay.spots[i], rows) : std::string("-1,")) + "\n";
  }
  return text;
}

}  // namespace mete::simulate
