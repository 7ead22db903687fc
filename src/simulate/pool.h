// SPDX-License-Identifier: Apache-2.0
// Machines described in short: own cards ("2xH200+1xT4") and instances of a cloud
// ("4xg4dn.12xlarge,2xp3.8xlarge"). Text in, values out. Two tables (data/) define the types: card
// types with their memory, instance types with their cards, CPUs and memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/cluster/model.h"
#include "core/place/place.h"

namespace mete::simulate {

inline constexpr std::uint32_t kMaxPoolCards = 1024;
inline constexpr std::uint32_t kMaxInstances = 100'000;

struct CardType {
  std::string name;
  std::int64_t mib = 0;
};
// Columns name, memory_mib.
Result<std::vector<CardType>> parse_card_types(std::string_view text, const std::string& path);

struct InstanceType {
  std::string name;
  std::uint32_t cards = 0;
  std::string card_type;
  std::int64_t card_mib = 0;  // of each
  std::int32_t cpu_milli = 0;
  std::int32_t ram_mib = 0;
};
// Columns name, gpus, gpu_type, gpu_memory_gib_total, vcpus, memory_gib.
Result<std::vector<InstanceType>> parse_instance_types(std::string_view text,
                                                       const std::string& path);

struct PoolPart {
  std::uint32_t count = 0;
  std::string type;
  std::int64_t mib = 0;  // of each card
  bool operator==(const PoolPart&) const = default;
};
// "2xH200+1xT4", "H200", "2xMYCARD:24G": the cards of one machine. invalid: unknown types, with the
// nearest one.
Result<std::vector<PoolPart>> parse_pool(std::string_view text, const std::vector<CardType>& types);
// "2xH200+1xT4".
std::string to_string(const std::vector<PoolPart>& parts);

// As the daemon's queue sees them: numbered from the end of `pool`, all of their memory grantable.
void add_cards(core::Pool& pool, const std::vector<PoolPart>& parts);
// As nodes of a cluster: one for each sixteen cards of a type, with unlimited CPU and memory.
std::vector<core::cluster::NodeSpec> nodes_of(const std::vector<PoolPart>& parts);

// "4xg4dn.12xlarge,2xp3.8xlarge", joined by commas or plus signs: one node each, with the attribute
// ecs.instance-type.
Result<std::vector<core::cluster::NodeSpec>> parse_instances(
    std::string_view text, const std::vector<InstanceType>& types);
core::cluster::NodeSpec node_of(const InstanceType& type, std::string name);

}  // namespace mete::simulate
