// SPDX-License-Identifier: Apache-2.0
// Making room: which jobs have to move, and where to, so that a request that no node can hold has a
// place after all; of all plans that are tried, the one that moves the least. A plan is made and
// carried out in one step, or nothing changes.
//
// Tried on every node: moving any one job, and on the cards that are nearest to having room the
// sets of jobs that hold the least of what is missing. Only jobs that currently have room
// elsewhere, in the order of what would be moved. A moved job goes where the policy says, but not
// back.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/cluster/policy.h"

namespace mete::simulate {

// A job that has a place.
struct Placed {
  std::uint32_t arrival = 0;
  core::cluster::KindId kind{};
  core::cluster::Spot spot;
};

struct Move {
  std::uint32_t arrival = 0;
  core::cluster::Spot to;
};

struct Plan {
  std::vector<Move> moves;
  core::cluster::Spot spot;  // for the request
  std::int64_t moved = 0;    // thousandths of cards
};

// Which job is where, for plans.
class Tenants {
 public:
  explicit Tenants(std::size_t nodes) : on_(nodes) {}
  void add(const Placed& placed) { on_[index_of(placed.spot.node)].push_back(placed); }
  const std::vector<Placed>& on(core::cluster::NodeId node) const { return on_[index_of(node)]; }

  // Limits of what may move.
  struct Most {
    std::int64_t share = 0;  // thousandths of cards
    std::uint64_t jobs = 0;
  };
  // Nullopt: there is no such plan; nothing has changed. Else the plan is carried out: jobs have
  // moved, and the request is placed as this arrival.
  std::optional<Plan> make_room(core::cluster::Cluster& cluster, core::cluster::NodePolicy& policy,
                                core::cluster::KindId request, std::uint32_t arrival, Most most);

 private:
  struct Candidate {
    std::int64_t moved = 0;
    core::cluster::NodeId node{};
    std::vector<std::uint32_t> who;  // of the jobs on the node, ascending
  };

  std::vector<Candidate> candidates(const core::cluster::Cluster& cluster,
                                    const core::cluster::Kind& request,
                                    const std::vector<bool>& movable, Most most) const;
  std::optional<Candidate> cheapest_cards(const core::cluster::Cluster& cluster,
                                          const core::cluster::Kind& request,
                                          const std::vector<bool>& movable,
                                          core::cluster::NodeId node) const;
  std::optional<Plan> carry_out(core::cluster::Cluster& cluster, core::cluster::NodePolicy& policy,
                                core::cluster::KindId request, std::uint32_t arrival,
                                const Candidate& candidate);

  std::vector<std::vector<Placed>> on_;  // by node
};

}  // namespace mete::simulate
