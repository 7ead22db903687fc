// SPDX-License-Identifier: Apache-2.0
// Which points of a space are tried, in which order. draw() is a pure function of the space, the
// seed and the number of the draw (TPE: and of the results so far), equal on every machine: whole
// numbers, +, -, *, / and maths.h alone. Memory is for the points drawn, not for the space.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/sweep/space.h"

namespace mete::core::sweep {

enum class Method { kGrid, kRandom, kSobol, kHalton, kLatin, kTpe };
inline constexpr std::array<std::string_view, 6> kMethods = {"grid",   "random", "sobol",
                                                             "halton", "lhs",    "tpe"};
std::string_view to_string(Method method);
std::optional<Method> parse_method(std::string_view text);

struct Sampling {
  Method method = Method::kRandom;
  std::optional<std::uint64_t> seed = {};  // Sobol, Halton without one: the published sequence
  std::uint64_t trials = 0;                // wanted in all: Latin hypercubes are made for this many
  bool scattered = false;  // a grid in an order that has each value of each parameter soon
  bool operator==(const Sampling&) const = default;
};

// A trial that TPE learns from. Lower is better. nullopt: it failed, or had no such metric (NaN).
struct Scored {
  Point point;
  std::optional<double> loss;
};

// invalid: a grid of a space with a continuous range (or of more than 2^63 points); a Latin
// hypercube without `trials`.
Result<void> check(const Space& space, const Sampling& sampling);

// How many draws there are; nullopt: no end (they repeat at last if the space is finite, and after
// a Latin hypercube comes another one).
std::optional<std::uint64_t> draws(const Space& space, const Sampling& sampling);

// Draw number n, from 0. nullopt: nothing at this number (a duplicate of a grid, or what `keep`
// refuses): the caller goes on with n + 1, and skips points that it has already. `scored` has the
// trials that have ended and `running` those that have not; only TPE uses them.
std::optional<Point> draw(const Space& space, const Sampling& sampling, std::uint64_t n,
                          std::span<const Scored> scored = {}, std::span<const Point> running = {});

// For tests and plots: number n of the sequence in `dimensions` dimensions, as the method draws it.
std::vector<double> unit_point(const Sampling& sampling, std::size_t dimensions, std::uint64_t n);

// See tpe.cc: a tree-structured Parzen estimator. Learns after kTpeStart results, until then it
// draws like kRandom.
inline constexpr std::size_t kTpeStart = 10;
Point suggest(const Space& space, std::uint64_t seed, std::uint64_t n,
              std::span<const Scored> scored, std::span<const Point> running);

}  // namespace mete::core::sweep
