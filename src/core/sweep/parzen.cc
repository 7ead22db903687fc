// SPDX-License-Identifier: Apache-2.0
// See parzen.h. The width of an axis follows the rule of Scott, c s n^(-1/(d + 4)) for n places in
// d dimensions with standard deviation s, to which the even density adds one place, so that few
// places that happen to lie together do not make it narrow. Densities are summed as logarithms:
// with many axes they are out of the range of numbers.
#include "core/sweep/parzen.h"

#include <algorithm>
#include <cmath>

#include "core/sweep/maths.h"

namespace mete::core::sweep {

namespace {

constexpr double kScale = 0.7;  // c, of the rule above
constexpr double kLeastWidth = 0.005;
constexpr double kLogRootOfTwoPi = 0x1.d67f1c864beb5p-1;
constexpr double kMost = 1 - 0x1p-53;

// How many places are on an axis, and how scattered they are.
struct Scatter {
  double count = 0;
  double deviation = 0;
};
Scatter scatter_of(std::span<const Place> places, std::size_t axis) {
  double count = 0, sum = 0.5;  // the even density counts as one place, with its own variance
  for (const Place& place : places)
    if (!std::isnan(place[axis])) {
      count += 1;
      sum += place[axis];
    }
  const double mean = sum / (count + 1);
  double squares = 1.0 / 12;
  for (const Place& place : places)
    if (!std::isnan(place[axis])) squares += (place[axis] - mean) * (place[axis] - mean);
  return {count, root_of(squares / (count + 1))};
}

// ln of the part of a normal distribution that lies in [0, 1]
double log_part(double middle, double width) {
  return log_of(normal_cdf((1 - middle) / width) - normal_cdf(-middle / width));
}

}  // namespace

double Dice::unit() { return unit_of_bits(mix(seed_, stream_, thrown_++)); }
std::size_t Dice::below(std::size_t count) {
  return static_cast<std::size_t>(unit() * static_cast<double>(count));
}

Parzen::Parzen(std::vector<Axis> axes, std::span<const Place> places, std::vector<double> weights,
               double even)
    : axes_(std::move(axes)), weights_(std::move(weights)), even_(even), total_(even) {
  std::vector<Scatter> scatters;
  double entries = 0;
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    scatters.push_back(scatter_of(places, a));
    entries += scatters[a].count;
  }
  // Dimensions: how many axes a place is on, on average.
  const double dimensions = entries / std::max(1.0, static_cast<double>(places.size()));
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    const double count = std::max(1.0, scatters[a].count);
    const double factor = exp_of(-log_of(count) / (dimensions + 4));
    const double width = kScale * scatters[a].deviation * factor;
    widths_.push_back(axes_[a].choices > 0 ? 1 / (1 + count)
                                           : std::max({width, axes_[a].cell / 2, kLeastWidth}));
  }
  kernels_.reserve(places.size() * axes_.size());
  for (const Place& place : places)
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      Kernel kernel{place[a], 0};
      if (axes_[a].choices == 0 && !std::isnan(place[a]))
        kernel.log_norm = -log_part(place[a], widths_[a]) - log_of(widths_[a]) - kLogRootOfTwoPi;
      kernels_.push_back(kernel);
    }
  for (const double weight : weights_) total_ += weight;
  for (const double weight : weights_) log_weights_.push_back(log_of(weight / total_));
}

// ln(e + w[1] k[1] + w[2] k[2] + …), where k is the product of a kernel over the axes. The density
// of choices is 1 on average, as that of numbers is: the number of choices times the probability.
double Parzen::log_density(const Place& place) const {
  struct On {
    std::size_t axis = 0;
    double at = 0;
    double factor = 0;          // numbers: -1 / (2 width^2)
    double own = 0, other = 0;  // choices: ln of the density
  };
  std::vector<On> on;
  for (std::size_t a = 0; a < axes_.size(); ++a) {
    if (std::isnan(place[a])) continue;
    const auto choices = static_cast<double>(axes_[a].choices);
    on.push_back({a, place[a], -0.5 / (widths_[a] * widths_[a]), 0, 0});
    if (axes_[a].choices == 0) continue;
    on.back().own = log_of((1 - widths_[a]) * choices + widths_[a]);
    on.back().other = log_of(widths_[a]);
  }
  std::vector<double> logs{log_of(even_ / total_)};
  logs.reserve(weights_.size() + 1);
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const Kernel* kernels = kernels_of(i);
    double sum = log_weights_[i];
    for (const On& axis : on) {
      const Kernel& kernel = kernels[axis.axis];
      if (std::isnan(kernel.middle)) continue;
      if (axes_[axis.axis].choices > 0) {
        sum += kernel.middle == axis.at ? axis.own : axis.other;
      } else {
        const double distance = axis.at - kernel.middle;
        sum += kernel.log_norm + distance * distance * axis.factor;
      }
    }
    logs.push_back(sum);
  }
  const double most = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (const double log : logs) sum += exp_of(log - most);
  return most + log_of(sum);
}

Place Parzen::sample(Dice& dice) const {
  double left = dice.unit() * total_;
  std::size_t chosen = 0;
  while (chosen < weights_.size() && left >= weights_[chosen]) left -= weights_[chosen++];
  Place place(axes_.size());
  for (std::size_t a = 0; a < axes_.size(); ++a)
    place[a] = sample_axis(
        a, chosen < weights_.size() ? kernels_of(chosen)[a].middle : std::nan(""), dice);
  return place;
}

// Inverts the distribution function, cut off at 0 and 1.
double Parzen::sample_axis(std::size_t axis, double middle, Dice& dice) const {
  const std::size_t choices = axes_[axis].choices;
  if (choices > 0) {
    const bool own = dice.unit() >= widths_[axis] && !std::isnan(middle);
    const auto other = static_cast<double>(dice.below(choices));
    return own ? middle : other;
  }
  const double unit = dice.unit();
  if (std::isnan(middle)) return unit;
  const double low = normal_cdf(-middle / widths_[axis]);
  const double high = normal_cdf((1 - middle) / widths_[axis]);
  const double p = std::clamp(low + (high - low) * unit, 0x1p-1000, kMost);
  return std::clamp(middle + widths_[axis] * normal_quantile(p), 0.0, kMost);
}

}  // namespace mete::core::sweep
