// SPDX-License-Identifier: Apache-2.0
// How much of the idle share of a node will be wasted, given the expected requests: the `mete`
// policy places a request where this grows least. In fixed point: kOne is a thousandth of a card.
//
// For a request r and a node with `idle` thousandths left on its cards let
//   once(r)   = what is left on the cards that could take r, if the node can hold one r, else 0
//   copies(r) = what as many r as the node can hold, by cards, CPU and memory, would take.
// A node's potential is
//     sum of w1(r) * (idle - once(r))     FGD's measure, with memory and more weight on small r
//   + sum of w2(r) * (idle - copies(r))   what repeated requests leave: 0.81 leaves 0.19 of a card
//   + kStranded * (idle - CPU / need)     if positive: cards with next to no CPU left for them
//   - kCpuOnly * sum of w3(c) * CPU(c)    what CPU-only requests c could use, as often as they fit.
// w1 and w2 fall with the size of a request and each add up to a constant; w3 falls with its
// square.
//
// Every group of nodes also has a price: the demand that only such nodes can hold, divided by what
// is idle on them. It makes requests that can go elsewhere do so.
#pragma once

#include <cstdint>
#include <vector>

#include "core/cluster/cluster.h"
#include "core/cluster/policy.h"

namespace mete::core::cluster {

class Potential {
 public:
  static constexpr std::int64_t kOne = 1 << 20;
  static constexpr std::int32_t kCpuStep = 100;

  Potential() = default;
  Potential(const Cluster& cluster, Mix mix);

  std::int64_t of(const Shape& shape) const;
  void price(const Cluster& cluster, std::vector<std::int64_t>& prices) const;

 private:
  struct Term {  // one kind of request that asks for cards
    std::int32_t cpu = 0;
    std::int32_t ram = 0;
    std::int64_t once = 0;    // w1
    std::int64_t copies = 0;  // w2 of what one copy takes
  };
  // Requests with equal cards and share, in ascending order of CPU.
  struct Bucket {
    std::uint32_t cards = 0;
    std::uint16_t share = 0;
    std::vector<Term> terms;
  };
  struct CpuTerm {
    std::int32_t cpu = 0;
    std::int32_t ram = 0;
    std::int64_t weight = 0;  // w3 of what one copy takes
  };

  // The demand of requests that can go to these groups and no others.
  struct Demand {
    std::vector<std::uint32_t> groups;
    std::int64_t part = 0;  // of the whole demand, times the price
  };

  void set_wastes(const Cluster& cluster, const Mix& mix);
  void weigh_kinds(const Cluster& cluster, const Mix& mix);
  void set_demands(const Cluster& cluster, const Mix& mix);
  Bucket& bucket(GroupId group, std::uint32_t cards, std::uint16_t share);

  std::vector<std::vector<Bucket>> buckets_;  // by group, in ascending order of share
  std::vector<CpuTerm> cpu_terms_;            // in ascending order of CPU
  // What common requests leave over of an amount, times its weight; zero beyond the end. CPU goes
  // in steps of kCpuStep.
  std::vector<std::int64_t> cpu_waste_;
  std::vector<std::int64_t> card_waste_;
  std::vector<Demand> demands_;
  std::int64_t idle_weight_ = 0;  // sum of w1 and w2
  std::int64_t need_ = 0;         // CPU per card, thousandths of a core; 0: unknown
};

}  // namespace mete::core::cluster
