// SPDX-License-Identifier: Apache-2.0
// A policy chooses where on a cluster a request goes; it never decides whether: a request that fits
// some node is placed. One file each. A policy may cache what it computed about shapes, but the
// cache never changes a choice: equal clusters, mixes and seeds give equal choices.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/cluster/cluster.h"

namespace mete::core::cluster {

// The expected requests: how often each kind comes. The order does not matter.
struct Expected {
  KindId kind{};
  std::uint64_t count = 0;
};
using Mix = std::vector<Expected>;

class NodePolicy {
 public:
  virtual ~NodePolicy() = default;
  // Nullopt: no node has room. Changes nothing.
  virtual std::optional<Spot> choose(const Cluster& cluster, KindId kind) = 0;
  // Sets the expected requests. Most policies ignore them.
  virtual void expect(const Cluster& cluster, const Mix& mix);
};

// invalid: no such policy; the error names the nearest. Accepts policy_names(), and a list as ECS
// has it: "spread:attribute:rack,binpack:cpu".
Result<std::unique_ptr<NodePolicy>> make_policy(std::string_view name, std::uint64_t seed = 0);
const std::vector<std::string_view>& policy_names();

std::unique_ptr<NodePolicy> make_best_fit();
std::unique_ptr<NodePolicy> make_fgd();
std::unique_ptr<NodePolicy> make_first_fit();
std::unique_ptr<NodePolicy> make_mete();
std::unique_ptr<NodePolicy> make_random(std::uint64_t seed);
std::unique_ptr<NodePolicy> make_spread();
std::unique_ptr<NodePolicy> make_topology();
Result<std::unique_ptr<NodePolicy>> make_ecs(std::string_view list, std::uint64_t seed);

}  // namespace mete::core::cluster
