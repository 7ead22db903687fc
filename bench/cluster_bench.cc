// SPDX-License-Identifier: Apache-2.0
// The cost of placement on a cluster, in CPU time on one thread, with the mete policy: decisions
// while a trace fills the cluster to 130 %; likewise on 4 and 16 times the nodes, with the exponent
// by which a decision grows; a million arrivals and departures at 90 % load, with a recount; gangs
// of eight nodes with eight cards; and the cost of explaining why there is no room and what would
// change that, where every change of every rejection is tried.
//
//   cluster_bench NODES.csv JOBS.csv        (the openb traces, for the figures in
//   docs/measurements)
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "base/file.h"
#include "core/cluster/chance.h"
#include "core/cluster/change.h"
#include "core/cluster/gang.h"
#include "core/cluster/reject.h"
#include "simulate/replay.h"

namespace {

using namespace mete;
using namespace mete::core::cluster;

double cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

std::uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// `times` copies of every node, and jobs drawn at random until 130 % of the cards are asked for.
simulate::Trace scaled(const simulate::Trace& one, std::size_t times) {
  simulate::Trace trace;
  trace.jobs = one.jobs;
  std::int64_t capacity = 0;
  for (std::size_t k = 0; k < times; ++k)
    for (NodeSpec node : one.nodes) {
      node.name += "." + std::to_string(k);
      capacity += static_cast<std::int64_t>(node.cards) * kWholeCard;
      trace.nodes.push_back(std::move(node));
    }
  Chance chance(times);
  for (std::int64_t asked = 0; asked * 10 < capacity * 13;) {
    const auto row = static_cast<std::uint32_t>(chance.below(trace.jobs.size()));
    asked += trace.jobs[row].ask.total_share();
    trace.arrivals.push_back(row);
  }
  return trace;
}

double decisions(const simulate::Trace& trace, int rounds) {
  std::vector<double> each;
  std::vector<std::uint32_t> times;
  for (int i = 0; i < rounds; ++i) {
    const std::unique_ptr<NodePolicy> policy = make_mete();
    const Result<simulate::Replay> replay =
        simulate::replay(trace, *policy, simulate::MixFrom::kJobs,
                         {monotonic_ns, [] { return static_cast<std::uint64_t>(cpu_ns()); }, {}});
    each.push_back(static_cast<double>(replay->cpu_ns) /
                   static_cast<double>(trace.arrivals.size()));
    times = replay->times_ns;
  }
  std::sort(times.begin(), times.end());
  const double ns = median(each);
  std::printf(
      "%6zu nodes %8zu arrivals  %6.0f ns each  %8.0f a second (best %8.0f)  p50 %u ns  p99 %u "
      "ns\n",
      trace.nodes.size(), trace.arrivals.size(), ns, 1e9 / ns,
      1e9 / *std::min_element(each.begin(), each.end()), times[times.size() / 2],
      times[times.size() * 99 / 100]);
  std::fflush(stdout);
  return ns;
}

struct World {
  explicit World(const simulate::Trace& trace) : cluster(*Cluster::make(trace.nodes)) {
    std::vector<std::uint64_t> counts;
    for (const simulate::TraceJob& job : trace.jobs) {
      const KindId kind = *cluster.kind_of(job.ask);
      kinds.push_back(kind);
      if (counts.size() <= index_of(kind)) counts.resize(index_of(kind) + 1);
      ++counts[index_of(kind)];
    }
    Mix mix;
    for (std::uint32_t i = 0; i < counts.size(); ++i) mix.push_back({KindId{i}, counts[i]});
    policy->expect(cluster, mix);
  }
  bool place() {
    const KindId kind = kinds[chance.below(kinds.size())];
    const std::optional<Spot> spot = policy->choose(cluster, kind);
    if (!spot) return false;
    cluster.take(kind, *spot);
    held.emplace_back(kind, *spot);
    return true;
  }
  void release() {
    const std::size_t at = chance.below(held.size());
    cluster.give_back(held[at].first, held[at].second);
    held[at] = held.back();
    held.pop_back();
  }
  bool below(std::int64_t percent) const {
    return (cluster.capacity() - cluster.idle()) * 100 < cluster.capacity() * percent;
  }

  Cluster cluster;
  std::vector<KindId> kinds;
  std::unique_ptr<NodePolicy> policy = make_mete();
  Chance chance{1};
  std::vector<std::pair<KindId, Spot>> held;
};

void churn(const simulate::Trace& trace) {
  World world(trace);
  while (world.below(90)) world.place();
  const double began = cpu_ns();
  std::size_t refused = 0;
  for (int i = 0; i < 1'000'000; ++i) {
    if (!world.below(90))
      world.release();
    else if (!world.place())
      ++refused;
  }
  const double took = (cpu_ns() - began) / 1e9;
  const std::string drift = world.cluster.recount();
  std::printf("1,000,000 arrivals and departures at 90 %%: %.2f s, %zu refused, recount: %s\n",
              took, refused, drift.empty() ? "no drift" : drift.c_str());
}

void gangs(const simulate::Trace& trace) {
  World world(trace);
  while (world.below(50)) world.place();
  const KindId node = *world.cluster.kind_of(
      {.cpu_milli = 64000, .ram_mib = 262144, .cards = 8, .share = kWholeCard});
  const std::vector<KindId> gang(8, node);
  std::vector<double> each;
  for (int i = 0; i < 1000; ++i) {
    const double began = cpu_ns();
    const auto spots = take_gang(world.cluster, *world.policy, gang);
    each.push_back(cpu_ns() - began);
    if (!spots) {
      std::printf("a gang of 8 x 8 cards found no room\n");
      return;
    }
    for (const Spot& spot : *spots) world.cluster.give_back(node, spot);
    world.place();
    world.release();
  }
  std::printf("a gang of 8 x 8 cards: median %.1f us, most %.1f us\n", median(each) / 1000,
              *std::max_element(each.begin(), each.end()) / 1000);
}

// Every rejection of a run: its causes and its smallest changes, which are then tried.
void rejections(const simulate::Trace& trace) {
  World world(trace);
  std::vector<double> each;
  std::size_t wrong = 0;
  std::size_t without = 0;
  for (const std::uint32_t row : trace.arrivals) {
    const KindId kind = world.kinds[row];
    if (const std::optional<Spot> spot = world.policy->choose(world.cluster, kind)) {
      world.cluster.take(kind, *spot);
      continue;
    }
    const double began = cpu_ns();
    const Rejection why = reject(world.cluster, kind);
    const std::vector<Change> list = changes(world.cluster, kind);
    each.push_back(cpu_ns() - began);
    if (why.of(Cause::kHasRoom) > 0) ++wrong;
    if (list.empty()) ++without;
    const std::unique_ptr<NodePolicy> any = make_first_fit();
    for (const Change& change : list)
      if (!any->choose(world.cluster, *world.cluster.kind_of(change.ask))) ++wrong;
  }
  if (each.empty()) return;
  std::printf(
      "why there is no room, and the smallest changes: median %.1f us, most %.1f us; %zu "
      "rejections, %zu without a change, %zu wrong\n",
      median(each) / 1000, *std::max_element(each.begin(), each.end()) / 1000, each.size(), without,
      wrong);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "cluster_bench NODES.csv JOBS.csv\n");
    return 64;
  }
  const Result<std::string> nodes = base::read_all(argv[1], simulate::kMaxTraceFile);
  const Result<std::string> jobs = base::read_all(argv[2], simulate::kMaxTraceFile);
  if (!nodes || !jobs) {
    std::fprintf(stderr, "%s\n", (nodes ? jobs : nodes).error().message.c_str());
    return 65;
  }
  simulate::Trace trace;
  trace.nodes = *simulate::parse_nodes(*nodes, argv[1]);
  trace.jobs = *simulate::parse_jobs(*jobs, argv[2], trace.nodes);
  const double one = decisions(scaled(trace, 1), 9);
  decisions(scaled(trace, 4), 3);
  const double sixteen = decisions(scaled(trace, 16), 3);
  std::printf("what a decision costs grows with the number of nodes to the power %.3f\n",
              std::log(sixteen / one) / std::log(16.0));
  churn(scaled(trace, 1));
  gangs(scaled(trace, 1));
  rejections(scaled(trace, 1));
  return 0;
}
