// SPDX-License-Identifier: Apache-2.0
// See cluster_site.h. grants() walks the queue in order. A job whose copies all find a place
// starts; choose_all() takes the places on the cluster one by one and gives them back, so that each
// copy sees the others. The first job that must wait gets a Hold: nodes and the time at which they
// have room. Later jobs are tried with that hold; a held node that a job would delay is filled for
// a moment, so that the policy looks elsewhere.
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

// For fair shares, if the memory of a card is unknown.
constexpr std::int64_t kSomeCardMib = 16'384;
constexpr std::size_t kFirstLesson = 32;

}  // namespace

Result<std::unique_ptr<ClusterSite>> ClusterSite::make(std::vector<core::cluster::NodeSpec> nodes,
                                                       const std::vector<Ask>& asks,
                                                       core::cluster::NodePolicy& policy,
                                                       MixFrom mix,
                                                       std::vector<std::uint32_t> copies) {
  Result<Cluster> cluster = Cluster::make(std::move(nodes));
  if (!cluster) return cluster.error();
  std::unique_ptr<ClusterSite> site(new ClusterSite(std::move(*cluster), policy, mix));
  std::vector<std::uint64_t> counts;
  copies.resize(asks.size(), 1);
  for (std::size_t i = 0; i < asks.size(); ++i) {
    const Result<ClusterKind> kind = site->cluster_.kind_of(asks[i]);
    if (!kind) return kind.error();
    site->gangs_.push_back({*kind, copies[i]});
    if (counts.size() <= index_of(*kind)) counts.resize(index_of(*kind) + 1);
    counts[index_of(*kind)] += copies[i];
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

// As in replay().
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
  const Gang& gang = gangs_[index];
  if (!could_ever(gang))
    return Error::infeasible(gang.copies == 1
                                 ? "no node could hold it, even empty"
                                 : "all nodes together could not hold its " +
                                       std::to_string(gang.copies) + " copies, even empty");
  learn(gang.kind);
  const core::JobId job{++last_, {}};
  unfinished_[job.number] = index;
  return std::vector<core::Happened>{core::JobSubmitted{job, submit.spec, std::nullopt}};
}

ClusterSite::Gang ClusterSite::gang_of(core::JobId id) const {
  return gangs_[unfinished_.at(id.number)];
}

std::vector<core::JobGranted> ClusterSite::grants(const core::State& state, WallTime now) {
  std::vector<core::JobGranted> list;
  std::optional<Hold> hold;
  if (state.pending().size() == 1) {  // no job is behind it: there is no order to find
    const core::JobId id = state.pending().queues().begin()->second.begin()->first;
    const Gang gang = gang_of(id);
    if (std::optional<std::vector<Spot>> spots = choose_all(gang, hold, std::nullopt))
      list.push_back(start(id, gang.kind, *std::move(spots)));
    return list;
  }
  static const core::Pool kNoCards;
  const core::PassInput input = state.pass_input({kNoCards, core::Policy::kBestFit, now});
  core::Line line(input);
  while (const std::optional<core::Line::Next> next = line.next()) {
    const Gang gang = gang_of(next->id);
    const std::optional<WallTime> ends =
        core::ends_if_started(input, input.pending->kind(next->kind));
    std::optional<std::vector<Spot>> spots = choose_all(gang, hold, ends);
    if (!spots) {
      if (!hold) hold = hold_for(gang, input);
      line.refused();
      continue;
    }
    list.push_back(start(next->id, gang.kind, *std::move(spots)));
    const core::Held held = core::held_of(list.back().cards);
    line.took(core::mib_per_second(held.bytes, 1));
  }
  return list;
}

// A place for each copy, none of them taken yet; the hold shrinks by what they would take of it.
std::optional<std::vector<Spot>> ClusterSite::choose_all(const Gang& gang,
                                                         std::optional<Hold>& hold,
                                                         std::optional<WallTime> ends) {
  std::optional<Hold> after = hold;
  std::vector<Spot> spots;
  while (spots.size() < gang.copies) {
    const std::optional<Spot> spot = choose(gang.kind, after, ends);
    if (!spot) break;
    const bool in_time = after && after->until && ends && *ends <= *after->until;
    if (after && !in_time)
      if (const auto part = after->parts.find(spot->node); part != after->parts.end())
        take_from(part->second.left, gang.kind, *spot);
    cluster_.take(gang.kind, *spot);
    spots.push_back(*spot);
  }
  for (const Spot& spot : spots) cluster_.give_back(gang.kind, spot);
  if (spots.size() < gang.copies) return std::nullopt;
  hold = std::move(after);
  return spots;
}

// Where the policy says, but not on a held node, unless that delays no job. While there is room on
// such a node it is filled for a moment, so that the policy looks elsewhere.
std::optional<Spot> ClusterSite::choose(ClusterKind kind, const std::optional<Hold>& hold,
                                        std::optional<WallTime> ends) {
  std::optional<Spot> spot = policy_.choose(cluster_, kind);
  if (!hold) return spot;
  const Ask& ask = cluster_.kind(kind).ask;
  if (ask.cards == 0 && ask.cpu_milli == 0 && ask.ram_mib == 0) return spot;
  std::vector<Spot> filled;
  std::optional<NodeId> filling;
  while (spot && (filling == spot->node || !delays_nobody(kind, *spot, *hold, ends))) {
    filling = spot->node;
    cluster_.take(kind, *spot);
    filled.push_back(*spot);
    spot = policy_.choose(cluster_, kind);
  }
  for (const Spot& each : filled) cluster_.give_back(kind, each);
  return spot;
}

bool ClusterSite::delays_nobody(ClusterKind kind, const Spot& spot, const Hold& hold,
                                std::optional<WallTime> ends) const {
  const auto part = hold.parts.find(spot.node);
  if (part == hold.parts.end()) return true;
  if (!hold.until) return false;
  if (ends && *ends <= *hold.until) return true;
  Left after = part->second.left;
  take_from(after, kind, spot);
  return copies_on(after, hold.kind, part->second.copies) == part->second.copies;
}

void ClusterSite::take_from(Left& left, ClusterKind id, const Spot& spot) const {
  const core::cluster::Kind& kind = cluster_.kind(id);
  left.cpu -= kind.ask.cpu_milli;
  left.ram -= kind.ask.ram_mib;
  const std::int32_t each = kind.share(cluster_.node(spot.node).group);
  for (std::size_t i = 0; i < spot.count; ++i) {
    std::uint16_t& free = left.free[spot.cards[i]];
    free = static_cast<std::uint16_t>(std::max<std::int32_t>(0, free - each));
  }
}

// How many copies there is room for, at most `most`. k copies, each on n different cards of which
// card i has room for c_i, fit if the c_i, none counted above k, add up to k times n.
std::uint32_t ClusterSite::copies_on(const Left& left, ClusterKind id, std::uint32_t most) const {
  const core::cluster::Kind& kind = cluster_.kind(id);
  const core::cluster::Node& node = cluster_.node(left.node);
  if (kind.share(node.group) == core::cluster::Kind::kNever) return 0;
  const auto times = [](std::int32_t of, std::int32_t each) {
    return each == 0 ? kMaxCopies : static_cast<std::uint32_t>(std::max(0, of) / each);
  };
  most = std::min({most, times(left.cpu, kind.ask.cpu_milli), times(left.ram, kind.ask.ram_mib)});
  if (kind.ask.cards == 0) return most;
  std::uint32_t copies = 0;
  for (; copies < most; ++copies) {
    std::uint32_t parts = 0;
    for (std::size_t i = 0; i < node.spec.cards; ++i)
      parts += std::min(copies + 1, times(left.free[i], kind.share(node.group)));
    if (parts < (copies + 1) * kind.ask.cards) break;
  }
  return copies;
}

bool ClusterSite::could_ever(const Gang& gang) const {
  const std::vector<std::uint16_t>& shares = cluster_.kind(gang.kind).share_on;
  if (gang.copies == 1)
    return std::any_of(shares.begin(), shares.end(),
                       [](std::uint16_t share) { return share != core::cluster::Kind::kNever; });
  std::uint32_t copies = 0;
  for (std::uint32_t n = 0; n < cluster_.nodes().size() && copies < gang.copies; ++n) {
    const core::cluster::NodeSpec& spec = cluster_.nodes()[n].spec;
    Left empty{NodeId{n}, spec.cpu_milli, spec.ram_mib, {}};
    std::fill_n(empty.free.begin(), spec.cards, static_cast<std::uint16_t>(kWholeCard));
    copies += copies_on(empty, gang.kind, gang.copies - copies);
  }
  return copies == gang.copies;
}

ClusterSite::Left ClusterSite::left_on(NodeId id) const {
  const core::cluster::Node& node = cluster_.node(id);
  return {id, node.cpu, node.ram, node.free};
}

ClusterSite::Hold ClusterSite::hold_for(const Gang& gang, const core::PassInput& input) const {
  // Frees the nodes as the running jobs end, one after another, until there is room for all copies.
  std::vector<std::pair<WallTime, std::uint64_t>> ends;
  for (const core::Running& running : input.running)
    if (running.ends) ends.emplace_back(*running.ends, running.id.number);
  std::sort(ends.begin(), ends.end());
  Hold hold{gang.kind, std::nullopt, {}};
  std::uint32_t copies = 0;  // that there is room for
  const auto look_at = [&](const Left& left) {
    Hold::Part& part = hold.parts[left.node];
    copies -= part.copies;
    part = {left, copies_on(left, gang.kind, gang.copies)};
    copies += part.copies;
  };
  if (gang.copies > 1)  // a single copy has no room yet
    for (std::uint32_t n = 0; n < cluster_.nodes().size(); ++n) look_at(left_on(NodeId{n}));
  for (const auto& [at, number] : ends) {
    const Placed& placed = placed_.at(number);
    const core::cluster::Kind& leaves = cluster_.kind(placed.kind);
    for (const Spot& spot : placed.spots) {
      const core::cluster::Node& node = cluster_.node(spot.node);
      const auto known = hold.parts.find(spot.node);
      Left left = known == hold.parts.end() ? left_on(spot.node) : known->second.left;
      left.cpu += leaves.ask.cpu_milli;
      left.ram += leaves.ask.ram_mib;
      for (std::size_t i = 0; i < spot.count; ++i) {
        std::uint16_t& free = left.free[spot.cards[i]];
        free = static_cast<std::uint16_t>(free + leaves.share(node.group));
      }
      look_at(left);
    }
    if (copies < gang.copies) continue;
    hold.until = at;
    keep_only(hold, gang.copies);
    return hold;
  }
  return hold_where_least_is_missing(gang);
}

// Keeps the nodes with the most room, until it is enough.
void ClusterSite::keep_only(Hold& hold, std::uint32_t copies) {
  std::vector<std::pair<std::uint32_t, NodeId>> most;
  for (const auto& [node, part] : hold.parts) most.emplace_back(part.copies, node);
  std::stable_sort(most.begin(), most.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (const auto& [room, node] : most) {
    Hold::Part& part = hold.parts.at(node);
    part.copies = std::min(part.copies, copies);
    copies -= part.copies;
    if (part.copies == 0) hold.parts.erase(node);
  }
}

// The time is unknown: chooses the nodes on which the least is missing of what one copy asks for;
// for a gang as many nodes as it takes, each with the copies that it has room for, or with one.
ClusterSite::Hold ClusterSite::hold_where_least_is_missing(const Gang& gang) const {
  const core::cluster::Kind& kind = cluster_.kind(gang.kind);
  std::vector<std::tuple<std::int64_t, std::uint32_t, NodeId>> nodes;
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
    nodes.emplace_back(missing, cluster_.rank(NodeId{n}), NodeId{n});
  }
  const std::size_t some = std::min<std::size_t>(gang.copies, nodes.size());
  std::partial_sort(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(some), nodes.end());
  Hold hold{gang.kind, std::nullopt, {}};
  std::uint32_t copies = gang.copies;
  for (std::size_t i = 0; i < some && copies > 0; ++i) {
    const Left left = left_on(std::get<NodeId>(nodes[i]));
    const std::uint32_t here = std::max(1u, copies_on(left, gang.kind, copies));
    hold.parts[left.node] = {left, here};
    copies -= here;
  }
  return hold;
}

void ClusterSite::change(NodeId node, const std::function<void()>& what) {
  fragmented_ -= fragmentation_.of(cluster_.shape(cluster_.node(node).cls));
  what();
  fragmented_ += fragmentation_.of(cluster_.shape(cluster_.node(node).cls));
}

core::JobGranted ClusterSite::start(core::JobId id, ClusterKind kind, std::vector<Spot> spots) {
  core::JobGranted granted{id, {}};
  for (const Spot& spot : spots) {
    change(spot.node, [&] { cluster_.take(kind, spot); });
    const core::cluster::Node& node = cluster_.node(spot.node);
    const std::int64_t card = node.spec.card_mib > 0 ? node.spec.card_mib : kSomeCardMib;
    const std::int32_t each = cluster_.kind(kind).share(node.group);
    for (std::size_t i = 0; i < spot.count; ++i)
      granted.cards.push_back(
          {spot.cards[i], node.spec.name + "/" + std::to_string(spot.cards[i]),
           Bytes::from_mib(static_cast<std::uint64_t>(card * each / kWholeCard)),
           each == kWholeCard});
  }
  placed_[id.number] = {kind, std::move(spots)};
  return granted;
}

void ClusterSite::ended(core::JobId id) {
  const auto placed = placed_.find(id.number);
  for (const Spot& spot : placed->second.spots)
    change(spot.node, [&] { cluster_.give_back(placed->second.kind, spot); });
  placed_.erase(placed);
  unfinished_.erase(id.number);
}

void ClusterSite::locate(const core::JobGranted& granted, Life& life) const {
  for (const Spot& spot : placed_.at(granted.id.number).spots)
    life.parts.push_back({static_cast<std::uint32_t>(index_of(spot.node)),
                          {spot.cards.begin(), spot.cards.begin() + spot.count}});
}

Site::Use ClusterSite::use(const core::State&) {
  const auto capacity = static_cast<double>(cluster_.capacity());
  if (capacity == 0) return {};
  return {100 * static_cast<double>(cluster_.capacity() - cluster_.idle()) / capacity,
          100 * std::max(0.0, fragmented_) / capacity};
}

}  // namespace mete::simulate
