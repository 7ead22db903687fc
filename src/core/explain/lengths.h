// SPDX-License-Identifier: Apache-2.0
// How long a job will run, in one future of several: drawn from what is known, by a sequence of
// numbers that follows from its seed alone. Inside of core/explain.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/order/estimate.h"

namespace mete::core {

// splitmix64: the same numbers everywhere.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() % count); }

 private:
  std::uint64_t state_;
};

// What is known of the length of one job: how long jobs like it ran, and its limit.
struct Length {
  std::vector<std::uint32_t> ran_s;     // in seconds; jobs of its user, name and program
  std::optional<std::uint64_t> time_s;  // --time

  bool is_known() const { return !ran_s.empty() || time_s; }
};
Length length_of(const Estimates& estimates, const JobSpec& spec);

// In seconds from its start, of a job that has run for `elapsed_s`: always more than that. nullopt:
// nothing is known. With n jobs known that ran longer, it ends between two of them that follow each
// other, or before the shortest, each with a chance of 1 in n + 1; and with the same chance after
// all of them: it runs for k times as long as the longest with a chance of 1 in k.
// `chance`, of all numbers of 32 bits, chooses: the smaller, the shorter. `grace_s` is how long the
// end of a job takes whose --time is over.
std::optional<std::uint64_t> draw_length(const Length& length, std::uint64_t elapsed_s,
                                         std::uint64_t grace_s, std::uint32_t chance);

// The chance of a job in the `future`-th of so many futures. Each job has every part of what may be
// once, in an order of its own, so that a few futures show all of it.
std::uint32_t chance_of(JobId id, std::size_t future, std::size_t futures, Draw& draw);

}  // namespace mete::core
