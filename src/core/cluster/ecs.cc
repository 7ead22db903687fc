// SPDX-License-Identifier: Apache-2.0
// Placement strategies as Amazon ECS has them: a list, each narrowing down what the one before left
// over. "binpack:cpu|memory" keeps the nodes with the least of that left (ours: also gpu and
// gpuMemory), "spread:instanceId" and "spread:attribute:NAME" the nodes or values of an attribute
// with the fewest tasks (nodes without the attribute count as one value), "random" any. Remaining
// ties are broken by rank.
#include <algorithm>
#include <map>

#include "base/text.h"
#include "core/cluster/chance.h"
#include "core/cluster/policy.h"
#include "core/cluster/scan.h"

namespace mete::core::cluster {

namespace {

constexpr std::size_t kMostStrategies = 5;  // as in ECS

enum class What { kCpu, kMemory, kGpu, kGpuMemory, kInstance, kAttribute, kRandom };

struct Strategy {
  What what = What::kRandom;
  std::string attribute;
};

Result<Strategy> parse(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string type = base::to_lower(text.substr(0, colon));
  const std::string_view field =
      colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  const std::string lower = base::to_lower(field);
  if (type == "random" && field.empty()) return Strategy{What::kRandom, {}};
  if (type == "binpack") {
    if (lower == "cpu") return Strategy{What::kCpu, {}};
    if (lower == "memory") return Strategy{What::kMemory, {}};
    if (lower == "gpu") return Strategy{What::kGpu, {}};
    if (lower == "gpumemory") return Strategy{What::kGpuMemory, {}};
    return Error::invalid("binpack is by cpu, memory, gpu or gpuMemory, not by " +
                          base::quote(field));
  }
  if (type == "spread") {
    if (lower == "instanceid" || lower == "host") return Strategy{What::kInstance, {}};
    if (lower.starts_with("attribute:") && field.size() > 10)
      return Strategy{What::kAttribute, std::string(field.substr(10))};
    return Error::invalid("spread is by instanceId or attribute:NAME, not by " +
                          base::quote(field));
  }
  return Error::invalid("there is no placement strategy " + base::quote(text))
      .with_hint(
          "binpack:cpu, binpack:memory, binpack:gpu, binpack:gpuMemory, spread:instanceId, "
          "spread:attribute:NAME and random can be joined by commas");
}

class Ecs : public NodePolicy {
 public:
  Ecs(std::vector<Strategy> strategies, std::uint64_t seed)
      : strategies_(std::move(strategies)), chance_(seed) {}

  std::optional<Spot> choose(const Cluster& cluster, KindId id) override {
    const Kind& kind = cluster.kind(id);
    std::vector<NodeId> left;
    for (std::uint32_t i = 0; i < cluster.nodes().size(); ++i)
      if (kind.fits(cluster.shape(cluster.nodes()[i].cls))) left.push_back(NodeId{i});
    if (left.empty()) return std::nullopt;
    std::sort(left.begin(), left.end(),
              [&](NodeId a, NodeId b) { return cluster.rank(a) < cluster.rank(b); });
    for (const Strategy& strategy : strategies_) narrow(cluster, strategy, left);
    const Shape& shape = cluster.shape(cluster.node(left.front()).cls);
    return cluster.spot_on(left.front(), kind, tightest(shape, kind));
  }

 private:
  void narrow(const Cluster& cluster, const Strategy& strategy, std::vector<NodeId>& left) {
    if (strategy.what == What::kRandom) {
      left = {left[chance_.below(left.size())]};
      return;
    }
    const std::map<std::string, std::int64_t> tasks = tasks_by(cluster, strategy.attribute);
    const auto key = [&](NodeId id) -> std::int64_t {
      const Node& node = cluster.node(id);
      const Shape& shape = cluster.shape(node.cls);
      switch (strategy.what) {
        case What::kCpu:
          return shape.cpu;
        case What::kMemory:
          return shape.ram;
        case What::kGpu:
          return shape.idle;
        case What::kGpuMemory:
          return shape.idle * node.spec.card_mib / kWholeCard;
        case What::kInstance:
          return node.grants;
        case What::kAttribute:
          return tasks.at(value_of(node, strategy.attribute));
        case What::kRandom:
          break;
      }
      return 0;
    };
    std::int64_t least = key(left.front());
    for (const NodeId id : left) least = std::min(least, key(id));
    std::erase_if(left, [&](NodeId id) { return key(id) != least; });
  }

  static std::string value_of(const Node& node, const std::string& attribute) {
    const auto found = node.spec.attributes.find(attribute);
    return found == node.spec.attributes.end() ? std::string() : found->second;
  }

  static std::map<std::string, std::int64_t> tasks_by(const Cluster& cluster,
                                                      const std::string& attribute) {
    std::map<std::string, std::int64_t> tasks;
    if (attribute.empty()) return tasks;
    for (const Node& node : cluster.nodes()) tasks[value_of(node, attribute)] += node.grants;
    return tasks;
  }

  std::vector<Strategy> strategies_;
  Chance chance_;
};

}  // namespace

Result<std::unique_ptr<NodePolicy>> make_ecs(std::string_view list, std::uint64_t seed) {
  std::vector<Strategy> strategies;
  for (const std::string_view part : base::split(list, ',')) {
    Result<Strategy> strategy = parse(base::trim(part));
    if (!strategy) return strategy.error();
    strategies.push_back(std::move(*strategy));
  }
  if (strategies.size() > kMostStrategies)
    return Error::invalid("at most " + std::to_string(kMostStrategies) + " strategies");
  return std::unique_ptr<NodePolicy>(std::make_unique<Ecs>(std::move(strategies), seed));
}

}  // namespace mete::core::cluster
