// SPDX-License-Identifier: Apache-2.0
// See cluster.h. A node's shape decides its class; take() and give_back() change a node and move it
// to the class of its new shape. enter() finds that class by hash or creates it, in a slot of an
// ended class if there is one, and adds it to the log. Each class keeps a lazy heap of the ranks of
// its nodes.
#include "core/cluster/cluster.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

#include "base/assert.h"
#include "base/text.h"

namespace mete::core::cluster {

namespace {

constexpr std::size_t kMinLog = 4096;

Result<void> check(const NodeSpec& spec) {
  const auto within = [](std::int64_t value, std::int64_t most) {
    return value >= 0 && value <= most;
  };
  const std::string who = "node " + base::quote(spec.name) + ": ";
  if (!within(spec.cpu_milli, kMaxCpuMilli)) return Error::invalid(who + "CPU is out of range");
  if (!within(spec.ram_mib, kMaxRamMib)) return Error::invalid(who + "memory is out of range");
  if (!within(spec.card_mib, kMaxCardMib))
    return Error::invalid(who + "card memory is out of range");
  if (spec.cards > kMaxCards)
    return Error::invalid(who + "has more than " + std::to_string(kMaxCards) + " cards");
  if (!spec.places.empty() && spec.places.size() != spec.cards)
    return Error::invalid(who + "says where some of its cards are, but not all");
  return {};
}

// The share of each card that a request takes on nodes of a group.
std::uint16_t resolve(const Ask& ask, const Group& group) {
  const Shape& empty = group.empty;
  if (empty.cpu < ask.cpu_milli || empty.ram < ask.ram_mib || empty.cards < ask.cards)
    return Kind::kNever;
  if (ask.cards == 0) return 0;
  if (!ask.types.empty() &&
      !std::binary_search(ask.types.begin(), ask.types.end(), group.card_type))
    return Kind::kNever;
  if (ask.share_mib == 0) return static_cast<std::uint16_t>(ask.share);
  if (ask.share_mib > group.card_mib) return Kind::kNever;
  // Rounded up: a grant is never smaller than the request.
  return static_cast<std::uint16_t>((ask.share_mib * kWholeCard + group.card_mib - 1) /
                                    group.card_mib);
}

}  // namespace

Result<Cluster> Cluster::make(std::vector<NodeSpec> specs, std::vector<std::uint32_t> rank) {
  Cluster cluster;
  std::set<std::string_view> names;
  for (const NodeSpec& spec : specs) {
    if (Result<void> r = check(spec); !r) return r.error();
    if (!names.insert(spec.name).second)
      return Error::invalid("there are two nodes " + base::quote(spec.name));
  }
  cluster.rank_ = std::move(rank);
  if (cluster.rank_.empty())
    for (std::uint32_t i = 0; i < specs.size(); ++i) cluster.rank_.push_back(i);
  if (cluster.rank_.size() != specs.size())
    return Error::invalid("there must be as many ranks as nodes");
  constexpr NodeId kNobody{0xffffffff};
  cluster.by_rank_.assign(specs.size(), kNobody);
  for (std::uint32_t i = 0; i < specs.size(); ++i) {
    const std::uint32_t at = cluster.rank_[i];
    if (at >= specs.size() || cluster.by_rank_[at] != kNobody)
      return Error::invalid("ranks must be the numbers from 0, each once");
    cluster.by_rank_[at] = NodeId{i};
  }
  cluster.nodes_.resize(specs.size());
  cluster.make_groups(specs);
  for (std::uint32_t i = 0; i < specs.size(); ++i) {
    Node& node = cluster.nodes_[i];
    node.cpu = specs[i].cpu_milli;
    node.ram = specs[i].ram_mib;
    std::fill_n(node.free.begin(), specs[i].cards, static_cast<std::uint16_t>(kWholeCard));
    cluster.capacity_ += static_cast<std::int64_t>(specs[i].cards) * kWholeCard;
    node.spec = std::move(specs[i]);
    node.cls = cluster.enter(shape_of(node));
    cluster.add_member(cluster.classes_[index_of(node.cls)], NodeId{i});
  }
  cluster.idle_ = cluster.capacity_;
  return cluster;
}

// Groups are numbered by their properties, not by the order of nodes: costs and ties must not
// depend on it.
void Cluster::make_groups(const std::vector<NodeSpec>& specs) {
  const auto key = [](const NodeSpec& spec) {
    return std::tuple(spec.card_type, spec.card_mib, spec.cards, spec.cpu_milli, spec.ram_mib);
  };
  std::map<decltype(key(specs[0])), std::vector<std::uint32_t>> sets;
  for (std::uint32_t i = 0; i < specs.size(); ++i) sets[key(specs[i])].push_back(i);
  for (const auto& [what, members] : sets) {
    const NodeSpec& spec = specs[members.front()];
    Group group;
    group.empty.group = GroupId{static_cast<std::uint32_t>(groups_.size())};
    group.empty.cpu = spec.cpu_milli;
    group.empty.ram = spec.ram_mib;
    group.empty.cards = spec.cards;
    group.empty.idle = static_cast<std::int32_t>(spec.cards) * kWholeCard;
    std::fill_n(group.empty.free.begin(), spec.cards, static_cast<std::uint16_t>(kWholeCard));
    group.card_type = spec.card_type;
    group.card_mib = spec.card_mib;
    group.nodes = static_cast<std::uint32_t>(members.size());
    for (const std::uint32_t i : members) nodes_[i].group = group.empty.group;
    group_idle_.push_back(static_cast<std::int64_t>(group.nodes) * group.empty.idle);
    groups_.push_back(std::move(group));
  }
}

// As nodes spell it: t4 is T4, as in the queue.
std::string Cluster::spelled(std::string type) const {
  const Group* other = nullptr;
  for (const Group& group : groups_) {
    if (group.card_type == type) return type;
    if (base::to_lower(group.card_type) == base::to_lower(type)) other = &group;
  }
  return other == nullptr ? type : other->card_type;
}

Result<KindId> Cluster::kind_of(Ask ask) {
  for (std::string& type : ask.types) type = spelled(std::move(type));
  std::sort(ask.types.begin(), ask.types.end());
  if (ask.cards == 0) {
    ask.share = 0;
    ask.share_mib = 0;
    ask.types.clear();
  }
  if (const auto known = kind_ids_.find(ask); known != kind_ids_.end()) return known->second;
  if (ask.cpu_milli < 0 || ask.cpu_milli > kMaxCpuMilli)
    return Error::invalid("CPU is out of range");
  if (ask.ram_mib < 0 || ask.ram_mib > kMaxRamMib) return Error::invalid("memory is out of range");
  if (ask.cards > kMaxCards)
    return Error::invalid("more than " + std::to_string(kMaxCards) + " cards on one node");
  if (ask.cards > 0 && ask.share_mib == 0 && (ask.share < 1 || ask.share > kWholeCard))
    return Error::invalid("the share of a card must be from 1 to 1000 thousandths");
  if (ask.share_mib < 0 || ask.share_mib > kMaxCardMib)
    return Error::invalid("card memory is out of range");
  const KindId id{static_cast<std::uint32_t>(kinds_.size())};
  Kind kind;
  for (const Group& group : groups_) kind.share_on.push_back(resolve(ask, group));
  kind.ask = ask;
  kinds_.push_back(std::move(kind));
  kind_ids_.emplace(std::move(ask), id);
  return id;
}

Shape Cluster::shape_of(const Node& node) {
  Shape shape;
  shape.group = node.group;
  shape.cpu = node.cpu;
  shape.ram = node.ram;
  shape.cards = node.spec.cards;
  for (std::size_t i = 0; i < shape.cards; ++i) {  // insertion sort: at most 16
    const std::uint16_t free = node.free[i];
    shape.idle += free;
    std::size_t at = i;
    for (; at > 0 && shape.free[at - 1] < free; --at) shape.free[at] = shape.free[at - 1];
    shape.free[at] = free;
  }
  return shape;
}

void Cluster::take(KindId kind_id, const Spot& spot) {
  const Kind& kind = this->kind(kind_id);
  Node& node = nodes_[index_of(spot.node)];
  METE_ASSERT(spot.count == kind.ask.cards);
  METE_ASSERT(node.cpu >= kind.ask.cpu_milli && node.ram >= kind.ask.ram_mib);
  const std::int32_t each = kind.share(node.group);
  METE_ASSERT(each != Kind::kNever);
  ++node.grants;
  node.cpu -= kind.ask.cpu_milli;
  node.ram -= kind.ask.ram_mib;
  for (std::size_t i = 0; i < spot.count; ++i) {
    METE_ASSERT(i == 0 || spot.cards[i - 1] < spot.cards[i]);
    std::uint16_t& free = node.free[spot.cards[i]];
    METE_ASSERT(spot.cards[i] < node.spec.cards && free >= each);
    free = static_cast<std::uint16_t>(free - each);
  }
  add_idle(node.group, -static_cast<std::int64_t>(spot.count) * each);
  move(spot.node);
}

void Cluster::give_back(KindId kind_id, const Spot& spot) {
  const Kind& kind = this->kind(kind_id);
  Node& node = nodes_[index_of(spot.node)];
  const std::int32_t each = kind.share(node.group);
  METE_ASSERT(node.grants > 0);
  --node.grants;
  node.cpu += kind.ask.cpu_milli;
  node.ram += kind.ask.ram_mib;
  METE_ASSERT(node.cpu <= node.spec.cpu_milli && node.ram <= node.spec.ram_mib);
  for (std::size_t i = 0; i < spot.count; ++i) {
    std::uint16_t& free = node.free[spot.cards[i]];
    free = static_cast<std::uint16_t>(free + each);
    METE_ASSERT(spot.cards[i] < node.spec.cards && free <= kWholeCard);
  }
  add_idle(node.group, static_cast<std::int64_t>(spot.count) * each);
  move(spot.node);
}

void Cluster::add_idle(GroupId group, std::int64_t share) {
  idle_ += share;
  group_idle_[index_of(group)] += share;
  ++version_;
}

void Cluster::move(NodeId id) {
  Node& node = nodes_[index_of(id)];
  const ClassId from = node.cls;
  const ClassId to = enter(shape_of(node));
  if (to == from) return;  // the request was empty
  node.cls = to;
  leave(from);
  add_member(classes_[index_of(to)], id);
}

ClassId Cluster::enter(const Shape& shape) {
  const std::uint64_t hash = hash_of(shape);
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (classes_[index_of(it->second)].shape == shape) return it->second;
  if (unused_.empty()) {
    unused_.push_back(ClassId{static_cast<std::uint32_t>(classes_.size())});
    classes_.emplace_back();
    generations_.push_back(0);
  }
  const ClassId id = unused_.back();
  unused_.pop_back();
  Class& cls = classes_[index_of(id)];
  cls.shape = shape;
  cls.hash = hash;
  cls.live_at = static_cast<std::uint32_t>(live_.size());
  live_.push_back(id);
  by_hash_.emplace(hash, id);
  if (log_.size() > std::max(kMinLog, 4 * live_.size())) {
    const std::size_t half = log_.size() / 2;
    log_.erase(log_.begin(), log_.begin() + static_cast<std::ptrdiff_t>(half));
    log_begin_ += half;
  }
  cls.born = log_end();
  log_.push_back(ref(id));
  return id;
}

void Cluster::leave(ClassId id) {
  Class& cls = classes_[index_of(id)];
  METE_ASSERT(cls.count > 0);
  if (--cls.count > 0) return;
  const auto [first, last] = by_hash_.equal_range(cls.hash);
  for (auto it = first; it != last; ++it)
    if (it->second == id) {
      by_hash_.erase(it);
      break;
    }
  const ClassId last_live = live_.back();
  live_[cls.live_at] = last_live;
  classes_[index_of(last_live)].live_at = cls.live_at;
  live_.pop_back();
  cls.ranks.clear();
  ++generations_[index_of(id)];
  unused_.push_back(id);
}

void Cluster::add_member(Class& cls, NodeId id) {
  ++cls.count;
  const ClassId own = nodes_[index_of(id)].cls;
  if (cls.ranks.size() > 2 * std::size_t{cls.count} + 16) {  // most entries have left
    std::erase_if(cls.ranks, [&](std::uint32_t rank) { return !is_member(rank, own); });
    std::sort(cls.ranks.begin(), cls.ranks.end());
    cls.ranks.erase(std::unique(cls.ranks.begin(), cls.ranks.end()), cls.ranks.end());
  }
  cls.ranks.push_back(rank(id));
  std::push_heap(cls.ranks.begin(), cls.ranks.end(), std::greater<>());
}

NodeId Cluster::first(ClassId id) const {
  const Class& cls = classes_[index_of(id)];
  METE_ASSERT(cls.count > 0);
  while (!is_member(cls.ranks.front(), id)) {
    std::pop_heap(cls.ranks.begin(), cls.ranks.end(), std::greater<>());
    cls.ranks.pop_back();
  }
  return by_rank_[cls.ranks.front()];
}

Spot Cluster::spot_on(NodeId id, const Kind& kind, std::size_t at) const {
  const Node& node = nodes_[index_of(id)];
  const std::size_t n = kind.ask.cards;
  Spot spot;
  spot.node = id;
  spot.count = static_cast<std::uint8_t>(n);
  if (n == 0) return spot;
  // By what is left, descending, then by number: position `at` of the shape is position `at` here.
  std::array<std::uint8_t, kMaxCards> order;
  for (std::size_t i = 0; i < node.spec.cards; ++i) {
    std::size_t to = i;
    for (; to > 0 && node.free[order[to - 1]] < node.free[i]; --to) order[to] = order[to - 1];
    order[to] = static_cast<std::uint8_t>(i);
  }
  // The lowest numbers among equal cards, from one island if it has enough.
  const std::uint16_t top = node.free[order[at]];
  std::size_t begin = at;
  while (begin > 0 && node.free[order[begin - 1]] == top) --begin;
  std::size_t end = begin;
  while (end < node.spec.cards && node.free[order[end]] == top) ++end;
  if (!node.spec.places.empty() && n > 1 && end - begin >= n) {
    const auto island = [&](std::size_t i) { return node.spec.places[order[i]].island; };
    for (std::size_t i = begin; i < end; ++i) {
      if (island(i) < 0) continue;
      std::size_t found = 0;
      for (std::size_t j = i; j < end && found < n; ++j)
        if (island(j) == island(i)) spot.cards[found++] = order[j];
      if (found == n) return spot;
    }
  }
  if (end - begin >= n) at = begin;
  for (std::size_t i = 0; i < n; ++i) spot.cards[i] = order[at + i];
  std::sort(spot.cards.begin(), spot.cards.begin() + static_cast<std::ptrdiff_t>(n));
  return spot;
}

std::string Cluster::recount() const {
  std::map<ClassId, std::uint32_t> members;
  std::int64_t idle = 0;
  std::vector<std::int64_t> by_group(groups_.size());
  for (const Node& node : nodes_) {
    const Shape shape = shape_of(node);
    idle += shape.idle;
    by_group[index_of(node.group)] += shape.idle;
    if (!(shape == this->shape(node.cls))) return "node " + node.spec.name + " is in a wrong class";
    ++members[node.cls];
  }
  if (idle != idle_ || by_group != group_idle_) return "the sum of what is idle has drifted";
  if (members.size() != live_.size()) return "there are classes without a node";
  for (const auto& [id, count] : members)
    if (count != this->count(id)) return "a class counts its nodes wrong";
  for (std::size_t i = 0; i < live_.size(); ++i)
    if (classes_[index_of(live_[i])].live_at != i) return "the list of classes is wrong";
  return "";
}

}  // namespace mete::core::cluster
