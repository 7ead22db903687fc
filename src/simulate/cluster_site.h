// SPDX-License-Identifier: Apache-2.0
// A cluster: the order is that of the queue (core::Line over State's jobs: priority, fair share,
// jobs that have waited too long), and a policy of core/cluster chooses the place.
//
// As on one machine, the first job in the queue that must wait has a place held: on the node on
// which it could start soonest as running jobs end, each by its limit or as learned; if that is
// unknown, on the node on which the least is missing. A later job may go there only if it will have
// ended by then, or if there is room for both; if the time is unknown, not at all.
//
// A job may be a gang: several copies of its request, on one node or many, which start together or
// not at all. Its hold is on as many nodes as it needs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/cluster/fragmentation.h"
#include "core/cluster/policy.h"
#include "core/order/pass.h"
#include "simulate/replay.h"
#include "simulate/timed.h"

namespace mete::simulate {

class ClusterSite : public Site {
 public:
  // `asks`: one for each job of the list; `copies`: how many of it start together, empty: one of
  // each. invalid: nodes or requests out of range.
  static Result<std::unique_ptr<ClusterSite>> make(std::vector<core::cluster::NodeSpec> nodes,
                                                   const std::vector<core::cluster::Ask>& asks,
                                                   core::cluster::NodePolicy& policy, MixFrom mix,
                                                   std::vector<std::uint32_t> copies = {});

  Result<std::vector<core::Happened>> submit(const core::State& state, const core::Submit& submit,
                                             std::size_t index, WallTime now) override;
  std::vector<core::JobGranted> grants(const core::State& state, WallTime now) override;
  void ended(core::JobId id) override;
  void locate(const core::JobGranted& granted, Life& life) const override;
  Use use(const core::State& state) override;

  const core::cluster::Cluster& cluster() const { return cluster_; }

 private:
  // What a job asks for.
  struct Gang {
    core::cluster::KindId kind{};
    std::uint32_t copies = 1;
  };
  struct Placed {
    core::cluster::KindId kind{};
    std::vector<core::cluster::Spot> spots;
  };
  // What is left of a node at some time.
  struct Left {
    core::cluster::NodeId node{};
    std::int32_t cpu = 0;
    std::int32_t ram = 0;
    std::array<std::uint16_t, core::cluster::kMaxCards> free{};
  };
  // What is held for the first waiting job: on each of some nodes, room for a number of copies.
  struct Hold {
    core::cluster::KindId kind{};
    std::optional<WallTime> until;
    struct Part {
      Left left;  // at that time
      std::uint32_t copies = 0;
    };
    std::map<core::cluster::NodeId, Part> parts;
  };

  ClusterSite(core::cluster::Cluster cluster, core::cluster::NodePolicy& policy, MixFrom mix)
      : cluster_(std::move(cluster)), policy_(policy), mix_(mix) {}

  Gang gang_of(core::JobId id) const;
  std::optional<std::vector<core::cluster::Spot>> choose_all(const Gang& gang,
                                                             std::optional<Hold>& hold,
                                                             std::optional<WallTime> ends);
  std::optional<core::cluster::Spot> choose(core::cluster::KindId kind,
                                            const std::optional<Hold>& hold,
                                            std::optional<WallTime> ends);
  bool delays_nobody(core::cluster::KindId kind, const core::cluster::Spot& spot, const Hold& hold,
                     std::optional<WallTime> ends) const;
  Hold hold_for(const Gang& gang, const core::PassInput& input) const;
  static void keep_only(Hold& hold, std::uint32_t copies);
  Hold hold_where_least_is_missing(const Gang& gang) const;
  std::uint32_t copies_on(const Left& left, core::cluster::KindId kind, std::uint32_t most) const;
  bool could_ever(const Gang& gang) const;
  Left left_on(core::cluster::NodeId node) const;
  void take_from(Left& left, core::cluster::KindId kind, const core::cluster::Spot& spot) const;
  core::JobGranted start(core::JobId id, core::cluster::KindId kind,
                         std::vector<core::cluster::Spot> spots);
  void change(core::cluster::NodeId node, const std::function<void()>& what);
  void learn(core::cluster::KindId kind);

  core::cluster::Cluster cluster_;
  core::cluster::NodePolicy& policy_;
  MixFrom mix_;
  std::vector<Gang> gangs_;                          // of each job of the list
  std::map<std::uint64_t, std::size_t> unfinished_;  // job number → position in the list
  std::map<std::uint64_t, Placed> placed_;           // job number → where
  std::uint64_t last_ = 0;
  std::vector<std::uint64_t> seen_;  // of a learned mix, by kind
  std::size_t arrived_ = 0;
  std::size_t lesson_ = 0;
  core::cluster::Fragmentation fragmentation_;
  double fragmented_ = 0;
};

}  // namespace mete::simulate
