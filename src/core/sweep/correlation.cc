// SPDX-License-Identifier: Apache-2.0
// See reduce.h. Pearson's r is that of the numbers, scaled so that no square overflows; Spearman's
// is Pearson's of the ranks, where equal numbers share their mean rank; Kendall's tau-b is counted
// with Knight's method: sort by x, then the exchanges of a merge sort by y are the pairs that
// disagree.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/sweep/maths.h"
#include "core/sweep/reduce.h"

namespace mete::core::sweep {

namespace {

using Numbers = std::vector<double>;

bool is_constant(const Numbers& numbers) {
  return std::all_of(numbers.begin(), numbers.end(),
                     [&](double one) { return one == numbers.front(); });
}

// Distances from the mean, at most 2 in size.
Numbers centred(Numbers numbers) {
  double most = 0;
  for (const double one : numbers) most = std::max(most, std::fabs(one));
  if (most == 0) return numbers;
  double sum = 0;
  for (double& one : numbers) sum += one /= most;
  const double mean = sum / static_cast<double>(numbers.size());
  for (double& one : numbers) one -= mean;
  return numbers;
}

std::optional<double> pearson(const Numbers& x, const Numbers& y) {
  const Numbers a = centred(x);
  const Numbers b = centred(y);
  double aa = 0;
  double bb = 0;
  double ab = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    aa += a[i] * a[i];
    bb += b[i] * b[i];
    ab += a[i] * b[i];
  }
  if (aa == 0 || bb == 0) return std::nullopt;
  return std::clamp(ab / root_of(aa * bb), -1.0, 1.0);
}

// {10, 20, 20, 30} has the ranks {1, 2.5, 2.5, 4}.
Numbers ranks_of(const Numbers& numbers) {
  std::vector<std::size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return numbers[a] != numbers[b] ? numbers[a] < numbers[b] : a < b;
  });
  Numbers ranks(numbers.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && numbers[order[end]] == numbers[order[begin]]) ++end;
    const double mean = static_cast<double>(begin + 1 + end) / 2;
    for (; begin < end; ++begin) ranks[order[begin]] = mean;
  }
  return ranks;
}

// Sorts, and returns how many pairs were in the wrong order.
std::uint64_t sort_counting(Numbers& numbers) {
  std::uint64_t wrong = 0;
  Numbers merged(numbers.size());
  for (std::size_t width = 1; width < numbers.size(); width *= 2) {
    for (std::size_t begin = 0; begin < numbers.size(); begin += 2 * width) {
      const std::size_t middle = std::min(begin + width, numbers.size());
      const std::size_t end = std::min(begin + 2 * width, numbers.size());
      std::size_t left = begin;
      std::size_t right = middle;
      for (std::size_t to = begin; to < end; ++to) {
        if (right == end || (left < middle && numbers[left] <= numbers[right])) {
          merged[to] = numbers[left++];
        } else {
          wrong += middle - left;
          merged[to] = numbers[right++];
        }
      }
    }
    numbers.swap(merged);
  }
  return wrong;
}

// Pairs of neighbours that are equal, in a sorted sequence of `size`.
template <class Equal>
std::uint64_t equal_pairs(std::size_t size, Equal&& equal) {
  std::uint64_t pairs = 0;
  std::uint64_t run = 1;
  for (std::size_t i = 1; i <= size; ++i) {
    if (i < size && equal(i - 1, i)) {
      ++run;
      continue;
    }
    pairs += run * (run - 1) / 2;
    run = 1;
  }
  return pairs;
}

// (agreeing - disagreeing) / sqrt(pairs that differ in x * pairs that differ in y)
std::optional<double> kendall(const Numbers& x, const Numbers& y) {
  const std::size_t n = x.size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (x[a] != x[b]) return x[a] < x[b];
    return y[a] != y[b] ? y[a] < y[b] : a < b;
  });
  const auto same_x = [&](std::size_t a, std::size_t b) { return x[order[a]] == x[order[b]]; };
  const std::uint64_t equal_x = equal_pairs(n, same_x);
  const std::uint64_t equal_both = equal_pairs(
      n, [&](std::size_t a, std::size_t b) { return same_x(a, b) && y[order[a]] == y[order[b]]; });
  Numbers sorted(n);
  for (std::size_t i = 0; i < n; ++i) sorted[i] = y[order[i]];
  const std::uint64_t disagree = sort_counting(sorted);
  const std::uint64_t equal_y =
      equal_pairs(n, [&](std::size_t a, std::size_t b) { return sorted[a] == sorted[b]; });
  const std::uint64_t all = static_cast<std::uint64_t>(n) * (n - 1) / 2;
  const std::uint64_t agree = all - equal_x - equal_y + equal_both - disagree;
  const double differ_x = static_cast<double>(all - equal_x);
  const double differ_y = static_cast<double>(all - equal_y);
  const double difference = static_cast<double>(agree) - static_cast<double>(disagree);
  return std::clamp(difference / root_of(differ_x * differ_y), -1.0, 1.0);
}

}  // namespace

std::optional<double> correlate(Correlation kind, std::span<const double> x,
                                std::span<const double> y) {
  const std::size_t size = std::min(x.size(), y.size());
  Numbers a;
  Numbers b;
  for (std::size_t i = size - std::min(size, kMaxPairsCorrelated); i < size; ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) continue;
    a.push_back(x[i]);
    b.push_back(y[i]);
  }
  if (a.size() < 3 || is_constant(a) || is_constant(b)) return std::nullopt;
  switch (kind) {
    case Correlation::kPearson:
      return pearson(a, b);
    case Correlation::kSpearman:
      return pearson(ranks_of(a), ranks_of(b));
    case Correlation::kKendall:
      return kendall(a, b);
  }
  return std::nullopt;
}

}  // namespace mete::core::sweep
