// SPDX-License-Identifier: Apache-2.0
// See cluster_site.h.
#include "simulate/cluster_site.h"

#include <algorithm>

#include "core/cluster/reject.h"
#include "core/order/fair_share.h"
#include "core/order/line.h"

namespace mete::simulate {

using core::cluster::Ask;
using core::cluster::Cluster;
using core::cluster::index_of;
using core::cluster::kWholeCard;
using core::cluster::NodeId;
using core::cluster::Spot;
using ClusterKind = core::cluster::KindId;

namespace {

// Where a card's memory is not known: what fair shares are reckoned with.
constexpr std::int64_t kSomeCardMib = 16'384;
constexpr std::size_t kFirstLesson = 32;

}  // namespace

Result<std::unique_ptr<ClusterSite>> ClusterSite::make(std::vector<core::cluster::NodeSpec> nodes,
                                                       const std::vector<Ask>& asks,
                                                       core::cluster::Policy& policy, MixFrom mix) {
  Result<Cluster> cluster = Cluster::make(std::move(nodes));
  if (!cluster) return cluster.error();
  std::unique_ptr<ClusterSite> site(new ClusterSite(std::move(*cluster), policy, mix));
  std::vector<std::uint64_t> counts;
  for (const Ask& ask : asks) {
    const Result<ClusterKind> kind = site->cluster_.kind_of(ask);
    if (!kind) return kind.error();
    site->kinds_.push_back(*kind);
    if (counts.size() <= index_of(*kind)) counts.resize(index_of(*kind) + 1);
    ++counts[index_of(*kind)];
  }
  core::cluster::Mix all;
  for (std::uint32_t i = 0; i < counts.size(); ++i) all.push_back({ClusterKind{i}, counts[i]});
  policy.expect(site->cluster_, mix == MixFrom::kJobs ? all : core::cluster::Mix{});
  site->seen_.resize(counts.size());
  site->lesson_ = kFirstLesson;
  site->fragmentation_ = core::cluster::Fragmentation(site->cluster_, all);
  for (const core::cluster::Node& node : site->cluster_.nodes())
    site->fragmented_ += site->fragmentation_.of(site->cluster_.shape(node.cls));
  return site;
}

// As replay() does.
void ClusterSite::learn(ClusterKind kind) {
  ++seen_[index_of(kind)];
  if (mix_ != MixFrom::kLearned || ++arrived_ < lesson_) return;
  core::cluster::Mix mix;
  for (std::uint32_t i = 0; i < seen_.size(); ++i)
    if (seen_[i] > 0) mix.push_back({ClusterKind{i}, seen_[i]});
  policy_.expect(cluster_, mix);
  lesson_ += lesson_ / 8;
}

Result<std::vector<core::Happened>> ClusterSite::submit(const core::State&,
                                                        const core::Submit& submit,
                                                        std::size_t index, WallTime) {
  const ClusterKind id = kinds_[index];
  const core::cluster::Kind& kind = cluster_.kind(id);
  const bool ever = std::any_of(kind.share_on.begin(), kind.share_on.end(), [](std::uint16_t each) {
    return each != core::cluster::Kind::kNever;
  });
  if (!ever) return Error::infeasible("no node could hold it, even empty");
  learn(id);
  const core::JobId job{++last_, {}};
  unfinished_[job.number] = index;
  return std::vector<core::Happened>{core::JobSubmitted{job, submit.spec, std::nullopt}};
}

std::vector<core::JobGranted> ClusterSite::grants(const core::State& state, WallTime now) {
  std::vector<core::JobGranted> list;
  if (state.pending().size() == 1) {  // nobody is behind it: there is no order to find
    const core::JobId id = state.pending().queues().begin()->second.begin()->first;
    const ClusterKind kind = kinds_[unfinished_.at(id.number)];
    if (const std::optional<Spot> spot = policy_.choose(cluster_, kind))
      list.push_back(start(id, kind, *spot));
    return list;
  }
  static const core::Pool kNoCards;
  const core::PassInput input = state.pass_input({kNoCards, core::Policy::kBestFit, now});
  core::Line line(input);
  std::optional<Hold> hold;
  while (const std::optional<core::Line::Next> next = line.next()) {
    const ClusterKind kind = kinds_[unfinished_.at(next->id.number)];
    const std::optional<WallTime> ends =
        core::ends_if_started(input, input.pending->kind(next->kind));
    const std::optional<Spot> spot = choose(kind, hold, ends);
    if (!spot) {
      if (!hold) hold = hold_for(kind, input);
      line.refused();
      continue;
    }
    if (hold && spot->node == hold->node && !(ends && hold->until && *ends <= *hold->until))
      take_from(*hold, kind, *spot);
    list.push_back(start(next->id, kind, *spot));
    const core::Held held = core::held_of(list.back().cards);
    line.took(core::mib_per_second(held.bytes, 1));
  }
  return list;
}

// Where the policy says, but not on the node that is held, unless that delays nobody. While there
// is room on that node it is filled for a moment, so that the policy looks elsewhere.
std::optional<Spot> ClusterSite::choose(ClusterKind kind, const std::optional<Hold>& hold,
                                        std::optional<WallTime> ends) {
  std::optional<Spot> spot = policy_.choose(cluster_, kind);
  if (!hold || !spot || spot->node != hold->node) return spot;
  const Ask& ask = cluster_.kind(kind).ask;
  if (ask.cards == 0 && ask.cpu_milli == 0 && ask.ram_mib == 0) return spot;
  if (hold->until) {
    if (ends && *ends <= *hold->until) return spot;
    Hold after = *hold;
    take_from(after, kind, *spot);
    if (fits(after)) return spot;
  }
  std::vector<Spot> filled;
  while (spot && spot->node == hold->node) {
    cluster_.take(kind, *spot);
    filled.push_back(*spot);
    spot = policy_.choose(cluster_, kind);
  }
  for (const Spot& each : filled) cluster_.give_back(kind, each);
  return spot;
}

void ClusterSite::take_from(Hold& hold, ClusterKind id, const Spot& spot) const {
  const core::cluster::Kind& kind = cluster_.kind(id);
  hold.cpu -= kind.ask.cpu_milli;
  hold.ram -= kind.ask.ram_mib;
  const std::int32_t each = kind.share(cluster_.node(spot.node).group);
  for (std::size_t i = 0; i < spot.count; ++i) {
    std::uint16_t& free = hold.free[spot.cards[i]];
    free = static_cast<std::uint16_t>(std::max<std::int32_t>(0, free - each));
  }
}

bool ClusterSite::fits(const Hold& hold) const {
  const core::cluster::Kind& kind = cluster_.kind(hold.kind);
  if (hold.cpu < kind.ask.cpu_milli || hold.ram < kind.ask.ram_mib) return false;
  const core::cluster::Node& node = cluster_.node(hold.node);
  std::uint32_t with = 0;
  for (std::size_t i = 0; i < node.spec.cards; ++i)
    with += hold.free[i] >= kind.share(node.group) ? 1 : 0;
  return with >= kind.ask.cards;
}

ClusterSite::Hold ClusterSite::hold_for(ClusterKind id, const core::PassInput& input) const {
  const core::cluster::Kind& kind = cluster_.kind(id);
  const auto as_it_is = [&](NodeId node_id) {
    const core::cluster::Node& node = cluster_.node(node_id);
    return Hold{node_id, id, std::nullopt, node.cpu, node.ram, node.free};
  };
  // Nodes as those on them end, one after another; the first that then has room is it.
  std::vector<std::pair<WallTime, std::uint64_t>> ends;
  for (const core::Running& running : input.running)
    if (running.ends) ends.emplace_back(*running.ends, running.id.number);
  std::sort(ends.begin(), ends.end());
  std::map<NodeId, Hold> later;
  for (const auto& [at, number] : ends) {
    const Placed& placed = placed_.at(number);
    const core::cluster::Node& node = cluster_.node(placed.spot.node);
    if (kind.share(node.group) == core::cluster::Kind::kNever) continue;
    Hold& hold = later.try_emplace(placed.spot.node, as_it_is(placed.spot.node)).first->second;
    const core::cluster::Kind& leaves = cluster_.kind(placed.kind);
    hold.cpu += leaves.ask.cpu_milli;
    hold.ram += leaves.ask.ram_mib;
    for (std::size_t i = 0; i < placed.spot.count; ++i) {
      std::uint16_t& free = hold.free[placed.spot.cards[i]];
      free = static_cast<std::uint16_t>(free + leaves.share(node.group));
    }
    if (!fits(hold)) continue;
    hold.until = at;
    return hold;
  }
  // Nobody knows when: where the least is missing, of what was asked for.
  std::optional<std::pair<std::int64_t, std::uint32_t>> least;
  NodeId best{};
  for (std::uint32_t n = 0; n < cluster_.nodes().size(); ++n) {
    const core::cluster::Node& node = cluster_.nodes()[n];
    if (kind.share(node.group) == core::cluster::Kind::kNever) continue;
    const core::cluster::Shape& shape = cluster_.shape(node.cls);
    const auto part = [](std::int64_t missing, std::int64_t of) {
      return missing > 0 && of > 0 ? missing * kWholeCard / of : 0;
    };
    std::int64_t missing = part(kind.ask.cpu_milli - shape.cpu, kind.ask.cpu_milli) +
                           part(kind.ask.ram_mib - shape.ram, kind.ask.ram_mib);
    for (std::size_t i = 0; i < kind.ask.cards; ++i)
      missing += std::max<std::int64_t>(0, kind.share(node.group) - shape.free[i]);
    const std::pair<std::int64_t, std::uint32_t> key{missing, cluster_.rank(NodeId{n})};
    if (least && *least <= key) continue;
    least = key;
    best = NodeId{n};
  }
  return as_it_is(best);
}

void ClusterSite::change(NodeId node, const std::function<void()>& what) {
  fragmented_ -= fragmentation_.of(cluster_.shape(cluster_.node(node).cls));
  what();
  fragmented_ += fragmentation_.of(cluster_.shape(cluster_.node(node).cls));
}

core::JobGranted ClusterSite::start(core::JobId id, ClusterKind kind, const Spot& spot) {
  change(spot.node, [&] { cluster_.take(kind, spot); });
  placed_[id.number] = {kind, spot};
  const core::cluster::Node& node = cluster_.node(spot.node);
  const std::int64_t card = node.spec.card_mib > 0 ? node.spec.card_mib : kSomeCardMib;
  const std::int32_t each = cluster_.kind(kind).share(node.group);
  core::JobGranted granted{id, {}};
  for (std::size_t i = 0; i < spot.count; ++i)
    granted.cards.push_back({spot.cards[i], node.spec.name + "/" + std::to_string(spot.cards[i]),
                             Bytes::from_mib(static_cast<std::uint64_t>(card * each / kWholeCard)),
                             each == kWholeCard});
  return granted;
}

void ClusterSite::ended(core::JobId id) {
  const auto placed = placed_.find(id.number);
  change(placed->second.spot.node,
         [&] { cluster_.give_back(placed->second.kind, placed->second.spot); });
  placed_.erase(placed);
  unfinished_.erase(id.number);
}

void ClusterSite::locate(const core::JobGranted& granted, Life& life) const {
  const Spot& spot = placed_.at(granted.id.number).spot;
  life.node = static_cast<std::uint32_t>(index_of(spot.node));
  life.cards.assign(spot.cards.begin(), spot.cards.begin() + spot.count);
}

Site::Use ClusterSite::use(const core::State&) {
  const auto capacity = static_cast<double>(cluster_.capacity());
  if (capacity == 0) return {};
  return {100 * static_cast<double>(cluster_.capacity() - cluster_.idle()) / capacity,
          100 * std::max(0.0, fragmented_) / capacity};
}

}  // namespace mete::simulate
