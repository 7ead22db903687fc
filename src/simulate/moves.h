// SPDX-License-Identifier: Apache-2.0
// Making room: which one or two jobs have to move, and where to, so that a request that no node can
// hold has a place after all; of all such plans the one that moves the least. A plan is made and
// carried out in one go, or nothing changes.
//
// What is tried: on every node, to send away each job, and each two, without which the request
// would fit; in the order of what would be moved. Whoever is sent away goes where the policy says,
// but not back.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/cluster/policy.h"

namespace mete::simulate {

// Somebody who has a place.
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

// Who is where, for plans.
class Tenants {
 public:
  explicit Tenants(std::size_t nodes) : on_(nodes) {}
  void add(const Placed& placed) { on_[index_of(placed.spot.node)].push_back(placed); }
  const std::vector<Placed>& on(core::cluster::NodeId node) const { return on_[index_of(node)]; }

  // Nullopt: no plan moves at most `most` thousandths of cards; nothing has changed. Else the plan
  // is carried out: jobs have moved, and the request is placed as this arrival.
  std::optional<Plan> make_room(core::cluster::Cluster& cluster, core::cluster::Policy& policy,
                                core::cluster::KindId request, std::uint32_t arrival,
                                std::int64_t most);

 private:
  struct Candidate {
    std::int64_t moved = 0;
    core::cluster::NodeId node{};
    std::array<std::uint32_t, 2> who{};  // of those on the node
    std::uint32_t count = 0;
  };

  std::vector<Candidate> candidates(const core::cluster::Cluster& cluster,
                                    const core::cluster::Kind& request, std::int64_t most) const;
  std::optional<Plan> carry_out(core::cluster::Cluster& cluster, core::cluster::Policy& policy,
                                core::cluster::KindId request, std::uint32_t arrival,
                                const Candidate& candidate);

  std::vector<std::vector<Placed>> on_;  // by node
};

}  // namespace mete::simulate
