// SPDX-License-Identifier: Apache-2.0
// See sampler.h. The random, Sobol, Halton and Latin samplers make a number in [0, 1) for each
// parameter, and the space makes the point from these numbers. A grid numbers the points of the
// space. Each number depends on the seed, the parameter and the number of the draw alone.
#include "core/sweep/sampler.h"

#include <algorithm>

#include "base/assert.h"
#include "core/sweep/maths.h"
#include "core/sweep/sequence.h"

namespace mete::core::sweep {

static_assert(kSobolDimensions >= kMaxParameters && kHaltonDimensions >= kMaxParameters);

namespace {

// Streams of random numbers below this one belong to the parameters.
constexpr std::uint64_t kOwnStreams = std::uint64_t{1} << 32;

// With a seed, the bits of a Sobol point are combined with random bits, one set for each dimension
// (a digital shift). Shifted points are as even as the published ones.
double shifted_sobol(const Sampling& sampling, std::size_t dimension, std::uint64_t index) {
  std::uint64_t bits = sobol_bits(dimension, index);
  if (sampling.seed) bits ^= mix(*sampling.seed, kOwnStreams, dimension) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

// With a seed, a random number is added to a Halton point, one for each dimension, and 1 is
// subtracted from what is not below 1 (a rotation after Cranley and Patterson).
double shifted_halton(const Sampling& sampling, std::size_t dimension, std::uint64_t index) {
  double unit = halton(dimension, index);
  if (sampling.seed) unit += unit_of_bits(mix(*sampling.seed, kOwnStreams, dimension));
  return std::min(unit < 1 ? unit : unit - 1, 1 - 0x1p-53);
}

// The range of each dimension has `trials` rows. Each row gets one sample, at a random place in it,
// and the rows come in a random order. After `trials` draws the next hypercube begins.
double latin(const Sampling& sampling, std::size_t dimension, std::uint64_t n) {
  const std::uint64_t rows = std::max<std::uint64_t>(sampling.trials, 1);
  const std::uint64_t seed = sampling.seed.value_or(0);
  const std::uint64_t key = mix(seed, kOwnStreams + 1 + n / rows, dimension);
  const std::uint64_t row = shuffled(key, rows, n % rows);
  // 20 bits and a half: never so near to a border that rounding leads into another row.
  const std::uint64_t place = mix(seed, dimension, n) >> 44;
  const double within = (static_cast<double>(place) + 0.5) * 0x1p-20;
  return (static_cast<double>(row) + within) / static_cast<double>(rows);
}

// A grid point has a number. Its digits are the values of the parameters.
struct Digit {
  std::size_t parameter = 0;
  std::uint64_t values = 0;
  std::uint64_t weight = 0;  // of this digit; the last parameter has the lowest digit
};
std::vector<Digit> digits_of(const Space& space) {
  std::vector<Digit> digits;
  std::uint64_t weight = 1;
  for (std::size_t i = space.parameters().size(); i-- > 0;) {
    const std::uint64_t values = *space.values_of(i);
    if (values > 1) digits.push_back({i, values, weight});
    weight *= values;
  }
  return digits;
}

// The number of point n of a grid in scattered order. The parameter with the most values goes
// through them in a spread order, again and again. Every other parameter goes through its values in
// a random order, with a new order for each round, so that each value comes once in a round. How:
// the digits of n are permuted one after another, and the digits before choose the permutation. So
// no point comes twice.
std::uint64_t scattered(const Space& space, std::uint64_t seed, std::uint64_t n) {
  std::vector<Digit> digits = digits_of(space);
  std::stable_sort(digits.begin(), digits.end(),
                   [](const Digit& a, const Digit& b) { return a.values > b.values; });
  std::uint64_t index = 0;
  std::uint64_t before = 0;  // the digits so far, as a number below `radix`
  std::uint64_t radix = 1;
  for (const Digit& digit : digits) {
    const std::uint64_t own = n % digit.values;
    n /= digit.values;
    const std::uint64_t key = mix(seed, kOwnStreams + digit.parameter, before / digit.values);
    const std::uint64_t turned = (own + before % digit.values) % digit.values;
    index += digit.weight *
             (radix == 1 ? spread(key, digit.values, turned) : shuffled(key, digit.values, turned));
    before += own * radix;
    radix *= digit.values;
  }
  return index;
}

}  // namespace

std::string_view to_string(Method method) { return kMethods[static_cast<std::size_t>(method)]; }

std::optional<Method> parse_method(std::string_view text) {
  for (std::size_t i = 0; i < kMethods.size(); ++i)
    if (text == kMethods[i]) return static_cast<Method>(i);
  return std::nullopt;
}

Result<void> check(const Space& space, const Sampling& sampling) {
  if (sampling.method == Method::kLatin && sampling.trials == 0)
    return Error::invalid("a Latin hypercube needs the number of trials").with_hint("--trials N");
  if (sampling.method != Method::kGrid || space.size()) return {};
  for (std::size_t i = 0; i < space.parameters().size(); ++i)
    if (!space.values_of(i))
      return Error::invalid("a grid needs values, and " + space.parameters()[i].name +
                            " is a continuous range")
          .with_hint("list its values, give it a step, or use another sampler");
  return Error::invalid("the grid has more than 2^63 points").with_hint("use another sampler");
}

std::optional<std::uint64_t> draws(const Space& space, const Sampling& sampling) {
  if (sampling.method == Method::kGrid) return space.size();
  return std::nullopt;
}

std::vector<double> unit_point(const Sampling& sampling, std::size_t dimensions, std::uint64_t n) {
  std::vector<double> unit(dimensions);
  for (std::size_t i = 0; i < dimensions; ++i) switch (sampling.method) {
      case Method::kSobol:
        unit[i] = shifted_sobol(sampling, i, n + 1);  // the origin is left out
        break;
      case Method::kHalton:
        unit[i] = shifted_halton(sampling, i, n + 1);
        break;
      case Method::kLatin:
        unit[i] = latin(sampling, i, n);
        break;
      case Method::kGrid:
      case Method::kRandom:
      case Method::kTpe:
        unit[i] = unit_of_bits(mix(sampling.seed.value_or(0), i, n));
        break;
    }
  return unit;
}

std::optional<Point> draw(const Space& space, const Sampling& sampling, std::uint64_t n,
                          std::span<const Scored> scored, std::span<const Point> running) {
  const std::uint64_t seed = sampling.seed.value_or(0);
  std::optional<Point> point;
  if (sampling.method == Method::kGrid) {
    const std::optional<std::uint64_t> size = space.size();
    if (!size || n >= *size) return std::nullopt;
    point = space.grid(sampling.scattered ? scattered(space, seed, n) : n);
  } else if (sampling.method == Method::kTpe) {
    point = suggest(space, seed, n, scored, running);
  } else {
    point = space.at(unit_point(sampling, space.parameters().size(), n));
  }
  if (point && !space.keeps(*point)) return std::nullopt;
  return point;
}

}  // namespace mete::core::sweep
