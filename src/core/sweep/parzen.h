// SPDX-License-Identifier: Apache-2.0
// A Parzen estimator: a density that is a mixture of kernels around known places, and of the even
// density. A kernel is a product over the axes. On an axis of numbers it is a normal distribution,
// cut off at 0 and 1. On an axis of choices most of its weight is on the choice of its place, and
// the rest is even. A place may be missing on an axis (its parameter is not in use): its kernel is
// even there. Kernels are wider on axes on which the known places are scattered more. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mete::core::sweep {

struct Axis {
  std::size_t choices = 0;  // how many values without an order; 0: a number in [0, 1]
  double cell = 0;          // the width of one value of a number that has few; 0: continuous
};

// For each axis a number in [0, 1], or the index of a choice. NaN: the place is not on this axis.
using Place = std::vector<double>;

// Random numbers, one after another.
class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}
  double unit();                         // in [0, 1)
  std::size_t below(std::size_t count);  // 0 … count - 1

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t thrown_ = 0;
};

class Parzen {
 public:
  // `weights`: of the places; `even`: of the even density. Only their proportions matter.
  Parzen(std::vector<Axis> axes, std::span<const Place> places, std::vector<double> weights,
         double even);
  // Axes that `place` is not on are left out.
  double log_density(const Place& place) const;
  // A place on every axis.
  Place sample(Dice& dice) const;

 private:
  struct Kernel {
    double middle = 0;    // or the choice; NaN: even
    double log_norm = 0;  // of the height of the cut-off normal distribution
  };
  const Kernel* kernels_of(std::size_t place) const {
    return kernels_.data() + place * axes_.size();
  }
  double sample_axis(std::size_t axis, double middle, Dice& dice) const;

  std::vector<Axis> axes_;
  std::vector<double> widths_;   // standard deviation; of choices: the weight on all choices
  std::vector<Kernel> kernels_;  // of each place, one for each axis
  std::vector<double> weights_;
  double even_ = 0;
  double total_ = 0;                 // of the weights, the even density's included
  std::vector<double> log_weights_;  // as parts of the total
};

}  // namespace mete::core::sweep
