// SPDX-License-Identifier: Apache-2.0
// The ledger of a simulated or described cluster: what is left on each node, and classes of nodes
// on which equal amounts are left. Taking and giving back cost the same with ten nodes and with
// twenty thousand. Nothing here chooses; policies do (policy.h). Taking what does not fit is a bug
// of the caller, and asserts.
//
// Classes come and go. The log names every new class, in order, so that an index need only look at
// what is new since it last looked (ranking.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "core/cluster/shape.h"

namespace mete::core::cluster {

// Nodes that are equal when empty.
struct Group {
  Shape empty;
  std::string card_type;
  std::int64_t card_mib = 0;
  std::uint32_t nodes = 0;
};

struct Node {
  NodeSpec spec;
  GroupId group{};
  ClassId cls{};
  std::int32_t cpu = 0;  // left
  std::int32_t ram = 0;
  std::uint32_t grants = 0;
  std::array<std::uint16_t, kMaxCards> free{};  // by card
};

// A class: its number, and the generation, since numbers are reused.
struct ClassRef {
  ClassId id{};
  std::uint32_t generation = 0;
  bool operator==(const ClassRef&) const = default;
};

class Cluster {
 public:
  // invalid: two nodes of one name, a quantity out of range. `rank` orders the nodes (the lowest is
  // preferred among equals); empty: the order of `nodes`.
  static Result<Cluster> make(std::vector<NodeSpec> nodes, std::vector<std::uint32_t> rank = {});

  // Equal requests are of one kind. Types are sorted, and spelled as nodes have them; invalid: out
  // of range.
  Result<KindId> kind_of(Ask ask);
  const Kind& kind(KindId id) const { return kinds_[index_of(id)]; }
  std::size_t kinds() const { return kinds_.size(); }

  void take(KindId kind, const Spot& spot);
  void give_back(KindId kind, const Spot& spot);

  const std::vector<Node>& nodes() const { return nodes_; }
  const Node& node(NodeId id) const { return nodes_[index_of(id)]; }
  std::uint32_t rank(NodeId id) const { return rank_[index_of(id)]; }
  const std::vector<Group>& groups() const { return groups_; }
  std::int64_t capacity() const { return capacity_; }  // thousandths of cards
  std::int64_t idle() const { return idle_; }
  std::int64_t idle(GroupId group) const { return group_idle_[index_of(group)]; }
  // Grows with every change.
  std::uint64_t version() const { return version_; }

  bool alive(ClassRef ref) const {
    return generations_[index_of(ref.id)] == ref.generation;  // a class that ends increments it
  }
  ClassRef ref(ClassId id) const { return {id, generations_[index_of(id)]}; }
  const Shape& shape(ClassId id) const { return classes_[index_of(id)].shape; }
  std::uint64_t shape_hash(ClassId id) const { return classes_[index_of(id)].hash; }
  std::uint64_t born(ClassId id) const { return classes_[index_of(id)].born; }
  std::uint32_t count(ClassId id) const { return classes_[index_of(id)].count; }
  // The node of a class with the lowest rank.
  NodeId first(ClassId id) const;
  // All classes with a node, in no order that matters to a decision.
  const std::vector<ClassId>& classes() const { return live_; }

  // New classes: [log_begin, log_end). Older ones are dropped from the log; a reader that has not
  // seen them looks at all classes.
  std::uint64_t log_begin() const { return log_begin_; }
  std::uint64_t log_end() const { return log_begin_ + log_.size(); }
  ClassRef logged(std::uint64_t at) const {
    return log_[static_cast<std::size_t>(at - log_begin_)];
  }

  // The cards of a node for a position in the descending order of its shape (see for_each_way): the
  // lowest numbers, but whole cards from one island if one has enough.
  Spot spot_on(NodeId node, const Kind& kind, std::size_t at) const;

  // Recounts everything from the nodes; "" or what is wrong. For tests and benchmarks.
  std::string recount() const;

 private:
  struct Class {
    Shape shape;
    std::uint64_t hash = 0;
    std::uint64_t born = 0;
    std::uint32_t count = 0;
    std::uint32_t live_at = 0;  // in live_
    // A heap of ranks, the lowest first. Nodes that left stay in it until they come to the top.
    mutable std::vector<std::uint32_t> ranks;
  };

  static Shape shape_of(const Node& node);
  std::string spelled(std::string type) const;
  void add_idle(GroupId group, std::int64_t share);
  void move(NodeId id);
  ClassId enter(const Shape& shape);
  void leave(ClassId id);
  void add_member(Class& cls, NodeId id);
  void make_groups(const std::vector<NodeSpec>& specs);
  bool is_member(std::uint32_t rank, ClassId id) const {
    return nodes_[index_of(by_rank_[rank])].cls == id;
  }

  std::vector<Node> nodes_;
  std::vector<std::uint32_t> rank_;
  std::vector<NodeId> by_rank_;
  std::vector<Group> groups_;
  std::vector<Kind> kinds_;
  std::map<Ask, KindId> kind_ids_;
  std::vector<Class> classes_;
  std::vector<std::uint32_t> generations_;  // of classes_; separate, since it is read most
  std::vector<ClassId> unused_;
  std::vector<ClassId> live_;
  std::unordered_multimap<std::uint64_t, ClassId> by_hash_;
  std::vector<ClassRef> log_;
  std::uint64_t log_begin_ = 0;
  std::int64_t capacity_ = 0;
  std::int64_t idle_ = 0;
  std::vector<std::int64_t> group_idle_;
  std::uint64_t version_ = 0;
};

}  // namespace mete::core::cluster
