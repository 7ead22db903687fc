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

class Lengths {
 public:
  explicit Lengths(const Estimates& estimates);

  // In seconds from its start, of a job that has run for `elapsed_s`; nullopt: nothing is known.
  std::optional<std::uint64_t> draw(const JobSpec& spec, std::uint64_t elapsed_s, Draw& draw) const;

 private:
  std::optional<std::uint64_t> without_limit(const JobSpec& spec, std::uint64_t elapsed_s,
                                             Draw& draw) const;

  const Estimates& estimates_;
  std::vector<std::uint32_t> all_;  // smallest first
};

}  // namespace mete::core
