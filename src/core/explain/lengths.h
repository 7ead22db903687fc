// SPDX-License-Identifier: Apache-2.0
// How long a job will run in one of several futures: drawn from what is known, by a sequence of
// numbers that depends only on its seed. Internal to core/explain.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/order/estimate.h"

namespace mete::core {

// splitmix64: equal numbers on every machine.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(next() % count); }

 private:
  std::uint64_t state_;
};

// What is known of the length of a job: how long jobs like it ran, and its limit.
struct Length {
  std::vector<std::uint32_t> ran_s;     // in seconds; jobs of its user, name and command
  std::optional<std::uint64_t> time_s;  // --time

  bool is_known() const { return !ran_s.empty() || time_s; }
};
Length length_of(const Estimates& estimates, const JobSpec& spec);

// The length in seconds from its start, for a job that has run for `elapsed_s`: always more than
// that. nullopt: nothing is known. With n known jobs that ran longer, it ends between two
// neighbours of them, or before the shortest, each with a chance of 1 in n + 1. With the same
// chance it ends after all of them: it runs k times as long as the longest with a chance of 1 in k.
// `chance`, a number of 32 bits, chooses: the smaller, the shorter. `grace_s` is how long ending a
// job takes after its --time is over.
std::optional<std::uint64_t> draw_length(const Length& length, std::uint64_t elapsed_s,
                                         std::uint64_t grace_s, std::uint32_t chance);

// The chance of a job in one of `futures` futures. Each job gets every part of the range once, in
// its own order, so that a few futures cover all of it.
std::uint32_t chance_of(JobId id, std::size_t future, std::size_t futures, Draw& draw);

}  // namespace mete::core
