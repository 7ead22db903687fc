// SPDX-License-Identifier: Apache-2.0
// How much of what is idle on a node will come to nothing, by what is expected to be asked for: the
// number that the `mete` policy makes grow least. In fixed point: kOne is a thousandth of a card.
//
// For a request r and a node with `idle` thousandths left on its cards let
//   once(r)  = what is left on the cards that could take r, if the node can hold one r, else 0
//   copies(r) = what as many r as the node can hold, by cards, CPU and memory, would take.
// A node's potential is
//     sum of w1(r) * (idle - once(r))      FGD's measure, but with memory, and small requests weigh
//     more
//   + sum of w2(r) * (idle - copies(r))    what repeated requests leave over: 0.81 leaves 0.19 of a
//   card
//   + kStranded * (idle - CPU / need)      if positive: cards for which there is next to no CPU
//   left
//   - kCpuOnly * sum of w3(c) * CPU(c)     what CPU-only requests c could use, as often as they
//   fit.
// w1 and w2 fall with the size of a request and each add up to a constant; w3 falls with the
// square.
//
// And every group of nodes has a price, which moves with what is left: what is asked for that only
// such nodes can hold, against what is idle on them. Whoever can go elsewhere should.
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
  // Of a whole card, by group, as things are now.
  void price(const Cluster& cluster, std::vector<std::int64_t>& prices) const;

 private:
  struct Term {  // one kind of request that asks for cards
    std::int32_t cpu = 0;
    std::int32_t ram = 0;
    std::int64_t once = 0;    // w1
    std::int64_t copies = 0;  // w2 of what one copy takes
  };
  // Requests for as many cards and as large a share; their CPU rises.
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

  // What is asked for by those who could go to these groups and no others.
  struct Demand {
    std::vector<std::uint32_t> groups;
    std::int64_t part = 0;  // of all that is asked for, times the price
  };

  void set_wastes(const Cluster& cluster, const Mix& mix);
  void weigh_kinds(const Cluster& cluster, const Mix& mix);
  void set_demands(const Cluster& cluster, const Mix& mix);
  Bucket& bucket(GroupId group, std::uint32_t cards, std::uint16_t share);

  std::vector<std::vector<Bucket>> buckets_;  // by group; shares rise
  std::vector<CpuTerm> cpu_terms_;            // CPU rises
  // What the common ones leave over of so much, times its weight; past its end nothing. CPU goes in
  // steps of kCpuStep.
  std::vector<std::int64_t> cpu_waste_;
  std::vector<std::int64_t> card_waste_;
  std::vector<Demand> demands_;
  std::int64_t idle_weight_ = 0;  // sum of w1 and w2
  std::int64_t need_ = 0;         // CPU for a card, thousandths of a core; 0: not known
};

}  // namespace mete::core::cluster
