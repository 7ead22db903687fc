// SPDX-License-Identifier: Apache-2.0
// What is left on a node, regardless of which node it is and of the order of its cards: nodes of
// one shape are equivalent, so policies look at shapes and never at nodes. A cluster of thousands
// of nodes has a few hundred shapes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/cluster/model.h"

namespace mete::core::cluster {

struct Shape {
  GroupId group{};
  std::int32_t cpu = 0;
  std::int32_t ram = 0;
  std::int32_t idle = 0;  // sum of `free`
  std::uint32_t cards = 0;
  std::array<std::uint16_t, kMaxCards> free{};  // thousandths left, descending; then zeros
  bool operator==(const Shape&) const = default;

  // How many cards have this much left: they are the first ones.
  std::uint32_t with(std::int32_t share) const {
    std::uint32_t n = 0;
    while (n < cards && free[n] >= share) ++n;
    return n;
  }
  bool untouched() const { return cards == 0 || free[cards - 1] == kWholeCard; }
};

std::uint64_t hash_of(const Shape& shape);

// A request, resolved on every group of nodes.
struct Kind {
  // Thousandths of each card on nodes of a group; kNever: such a node could not hold the request
  // even when empty.
  static constexpr std::uint16_t kNever = 0xffff;

  Ask ask;
  std::vector<std::uint16_t> share_on;  // by group

  std::int32_t share(GroupId group) const { return share_on[index_of(group)]; }
  bool fits(const Shape& shape) const {
    const std::int32_t each = share(shape.group);
    if (each == kNever || shape.cpu < ask.cpu_milli || shape.ram < ask.ram_mib) return false;
    return ask.cards == 0 || shape.free[ask.cards - 1] >= each;
  }
};

// The shape after a request took the cards [at, at + cards) of the descending order, where it must
// fit.
Shape after(const Shape& shape, const Kind& kind, std::size_t at);

// Calls f(at) for each distinct position of the descending order where the cards [at, at + cards)
// have room. A whole card has one.
template <typename F>
void for_each_way(const Shape& shape, const Kind& kind, F&& f) {
  const std::size_t n = kind.ask.cards;
  if (n == 0) return f(std::size_t{0});
  const std::int32_t each = kind.share(shape.group);
  for (std::size_t at = 0; at + n <= shape.cards && shape.free[at + n - 1] >= each; ++at)
    if (at == 0 || shape.free[at - 1] != shape.free[at + n - 1]) f(at);
}

}  // namespace mete::core::cluster
