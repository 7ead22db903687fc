// SPDX-License-Identifier: Apache-2.0
// See reduce.h. The results in the window are collected first. For each parameter with a list, each
// value that occurs in the window is correlated with the loss; the work is bounded by the window,
// not by the length of the lists.
#include "core/sweep/reduce.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <variant>

#include "base/text.h"
#include "core/sweep/pairs.h"

namespace mete::core::sweep {

namespace {

constexpr std::array<std::string_view, 4> kKeys = {"method", "window", "interval", "threshold"};
constexpr std::array<std::pair<std::string_view, Correlation>, 3> kKinds = {
    {{"pearson", Correlation::kPearson},
     {"spearman", Correlation::kSpearman},
     {"kendall", Correlation::kKendall}}};

// The last results with a loss, the latest first.
std::vector<const Scored*> window_of(std::span<const Scored> scored, std::size_t window) {
  std::vector<const Scored*> last;
  for (std::size_t i = scored.size(); i > 0 && last.size() < window; --i)
    if (scored[i - 1].loss) last.push_back(&scored[i - 1]);
  return last;
}

bool is_dropped(std::size_t parameter, const Value& value, std::span<const Dropped> dropped) {
  return std::any_of(dropped.begin(), dropped.end(), [&](const Dropped& one) {
    return one.parameter == parameter && one.value == value;
  });
}

// The values of a parameter that may be dropped: those with two results, in the order of the space;
// none if only one value would be left.
std::vector<const Value*> candidates(const std::vector<Value>& values, std::size_t parameter,
                                     std::span<const Scored* const> used,
                                     std::span<const Dropped> dropped) {
  std::vector<std::string_view> texts;  // of the results, sorted
  for (const Scored* one : used) texts.push_back(one->point[parameter]->text);
  std::sort(texts.begin(), texts.end());
  std::vector<const Value*> found;
  std::size_t left = values.size();
  for (const Value& value : values) {
    if (is_dropped(parameter, value, dropped)) {
      --left;
      continue;
    }
    const auto [begin, end] = std::equal_range(texts.begin(), texts.end(), value.text);
    if (end - begin >= 2) found.push_back(&value);
  }
  return left < 2 ? std::vector<const Value*>{} : found;
}

}  // namespace

Result<ReduceRule> parse_reduce(std::string_view text) {
  const Result<Pairs> pairs = Pairs::parse("the reducer", text, kKeys);
  if (!pairs) return pairs.error();
  ReduceRule rule;
  if (const Pair* method = pairs->find("method")) {
    const auto known = std::find_if(kKinds.begin(), kKinds.end(),
                                    [&](const auto& one) { return one.first == method->value; });
    if (known == kKinds.end())
      return pairs->wrong("method", "method is pearson, spearman or kendall");
    rule.kind = known->second;
  }
  const Result<std::uint64_t> window = pairs->whole("window", rule.window, 3, kMaxWindow);
  if (!window) return window.error();
  rule.window = static_cast<std::size_t>(*window);
  const Result<std::uint64_t> interval =
      pairs->whole("interval", std::min(rule.interval, rule.window), 1, rule.window);
  if (!interval) return interval.error();
  rule.interval = static_cast<std::size_t>(*interval);
  if (const Pair* threshold = pairs->find("threshold")) {
    const char* const end = threshold->value.data() + threshold->value.size();
    const auto [read, error] = std::from_chars(threshold->value.data(), end, rule.threshold);
    if (error != std::errc() || read != end || !(rule.threshold > 0 && rule.threshold <= 1))
      return pairs->wrong("threshold", "threshold is a number above 0 and at most 1");
  }
  return rule;
}

std::string to_string(const ReduceRule& rule) {
  std::array<char, 32> digits{};
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), rule.threshold);
  std::string method;
  for (const auto& [name, kind] : kKinds)
    if (kind == rule.kind) method = name;
  return "method=" + method + ",window=" + std::to_string(rule.window) +
         ",interval=" + std::to_string(rule.interval) +
         ",threshold=" + std::string(digits.data(), written.ptr);
}

std::optional<Dropped> reduce(const Space& space, const ReduceRule& rule,
                              std::span<const Scored> scored, std::span<const Dropped> dropped) {
  const std::vector<const Scored*> window = window_of(scored, std::min(rule.window, kMaxWindow));
  if (window.size() < std::min(rule.interval, rule.window)) return std::nullopt;
  std::optional<Dropped> worst;
  for (std::size_t parameter = 0; parameter < space.parameters().size(); ++parameter) {
    const auto* values = std::get_if<std::vector<Value>>(&space.parameters()[parameter].domain);
    if (values == nullptr) continue;
    std::vector<const Scored*> used;
    for (const Scored* one : window)
      if (parameter < one->point.size() && one->point[parameter]) used.push_back(one);
    std::vector<double> losses;
    for (const Scored* one : used) losses.push_back(*one->loss);
    for (const Value* value : candidates(*values, parameter, used, dropped)) {
      std::vector<double> has;
      for (const Scored* one : used) has.push_back(one->point[parameter] == *value ? 1.0 : 0.0);
      const std::optional<double> found = correlate(rule.kind, has, losses);
      if (found && *found >= rule.threshold && (!worst || *found > worst->correlation))
        worst = Dropped{parameter, *value, *found};
    }
  }
  return worst;
}

bool has_dropped(const Point& point, std::span<const Dropped> dropped) {
  return std::any_of(dropped.begin(), dropped.end(), [&](const Dropped& one) {
    return one.parameter < point.size() && point[one.parameter] == one.value;
  });
}

}  // namespace mete::core::sweep
