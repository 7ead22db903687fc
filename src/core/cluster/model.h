// SPDX-License-Identifier: Apache-2.0
// Nodes with CPU, memory and cards of one type, and requests for cards or shares of them. All
// quantities are integers: CPU in thousandths of a core, memory in MiB, a card's share in
// thousandths. A machine with cards of several types is several nodes here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mete::core::cluster {

inline constexpr std::int32_t kWholeCard = 1000;  // thousandths
inline constexpr std::size_t kMaxCards = 16;      // on one node
// Far above any real machine, and small enough that sums over a node never overflow.
inline constexpr std::int32_t kMaxCpuMilli = 100'000'000;
inline constexpr std::int32_t kMaxRamMib = 1'000'000'000;
inline constexpr std::int64_t kMaxCardMib = 1'000'000'000;

enum class NodeId : std::uint32_t {};
enum class GroupId : std::uint32_t {};  // nodes that are equal when empty
enum class KindId : std::uint32_t {};   // requests that are equal
enum class ClassId : std::uint32_t {};  // nodes on which equal amounts are left

template <typename Id>
constexpr std::size_t index_of(Id id) {
  return static_cast<std::size_t>(id);
}

// Where a card sits: cards of one island are joined by NVLink. -1: unknown.
struct CardPlace {
  std::int16_t island = -1;
  std::int16_t numa = -1;
  bool operator==(const CardPlace&) const = default;
};

struct NodeSpec {
  std::string name;
  std::int32_t cpu_milli = 0;
  std::int32_t ram_mib = 0;
  std::uint32_t cards = 0;
  std::string card_type;
  std::int64_t card_mib = 0;      // memory of each card; 0: unknown
  std::vector<CardPlace> places;  // one for each card, or empty
  std::map<std::string, std::string> attributes;
};

// A request. A share is in thousandths of a card, or in MiB, whose thousandths depend on the card.
struct Ask {
  std::int32_t cpu_milli = 0;
  std::int32_t ram_mib = 0;
  std::uint32_t cards = 0;              // different cards of one node; 0: no GPU
  std::int32_t share = 0;               // thousandths of each card; 1000: exclusive
  std::int64_t share_mib = 0;           // of each card; instead of `share`
  std::vector<std::string> types = {};  // allowed; empty: any. Sorted (see cluster.h)
  auto operator<=>(const Ask&) const = default;

  std::int64_t total_share() const { return static_cast<std::int64_t>(cards) * share; }
};

// Where a request goes. Cards in ascending order.
struct Spot {
  NodeId node{};
  std::uint8_t count = 0;
  std::array<std::uint8_t, kMaxCards> cards{};
  bool operator==(const Spot&) const = default;
};

}  // namespace mete::core::cluster
