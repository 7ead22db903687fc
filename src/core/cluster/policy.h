// SPDX-License-Identifier: Apache-2.0
// A policy chooses where on a cluster a request goes; it never decides whether: what some node can
// hold is placed. One file each. A policy may remember what it reckoned about shapes, and what it
// remembers never changes what it chooses: the same cluster, mix and seed give the same choices.
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

// What is expected to be asked for: how often each kind. Order does not matter.
struct Expected {
  KindId kind{};
  std::uint64_t count = 0;
};
using Mix = std::vector<Expected>;

class NodePolicy {
 public:
  virtual ~NodePolicy() = default;
  // Nullopt: no node has room. Takes nothing.
  virtual std::optional<Spot> choose(const Cluster& cluster, KindId kind) = 0;
  // From now on these requests are to be reckoned with. Most policies do not care.
  virtual void expect(const Cluster& cluster, const Mix& mix);
};

// invalid: no such policy; the error names the nearest. Besides policy_names() a list as ECS has
// it: "spread:attribute:rack,binpack:cpu".
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
