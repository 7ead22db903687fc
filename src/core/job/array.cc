// SPDX-License-Identifier: Apache-2.0
#include "core/job/array.h"

#include <algorithm>

#include "base/text.h"

namespace mete::core {

namespace {

Error bad(std::string_view text, const std::string& why) {
  return Error::invalid("--array " + base::quote(text) + ": " + why)
      .with_hint("write --array 0-99, 1,3,5 or 0-99%4 for at most four at a time");
}

std::optional<std::uint32_t> element(std::string_view text) {
  const Result<std::uint64_t> number = base::parse_uint(text);
  if (!number || *number > kMaxElement) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

std::optional<Array::Range> range(std::string_view text) {
  Array::Range range;
  const std::size_t dash = text.find('-');
  const std::optional<std::uint32_t> first = element(text.substr(0, dash));
  if (!first) return std::nullopt;
  range.first = range.last = *first;
  if (dash == std::string_view::npos) return range;
  text.remove_prefix(dash + 1);
  const std::size_t colon = text.find(':');
  const std::optional<std::uint32_t> last = element(text.substr(0, colon));
  if (!last || *last < range.first) return std::nullopt;
  range.last = *last;
  if (colon == std::string_view::npos) return range;
  const std::optional<std::uint32_t> step = element(text.substr(colon + 1));
  if (!step || *step == 0) return std::nullopt;
  if (range.last > range.first) range.step = *step;  // a single element has no step
  return range;
}

std::size_t count(const Array::Range& range) {
  return (range.last - range.first) / range.step + std::size_t{1};
}

}  // namespace

Result<Array> parse_array(std::string_view text) {
  Array array;
  const std::size_t percent = text.find('%');
  if (percent != std::string_view::npos) {
    const std::optional<std::uint32_t> at_once = element(text.substr(percent + 1));
    if (!at_once || *at_once == 0) return bad(text, "after % stands how many may run at a time");
    array.at_once = at_once;
  }
  std::size_t elements = 0;
  for (const std::string_view part : base::split(text.substr(0, percent), ',')) {
    const std::optional<Array::Range> next = range(part);
    if (!next)
      return bad(text, base::quote(part) + " is no number up to " + std::to_string(kMaxElement) +
                           " and no range of such");
    elements += count(*next);
    if (elements > kMaxElements)
      return bad(text, "an array has at most " + std::to_string(kMaxElements) + " jobs");
    array.ranges.push_back(*next);
  }
  if (array.ranges.size() == 1) return array;  // a single range has no duplicates
  std::vector<std::uint32_t> all = elements_of(array);
  std::sort(all.begin(), all.end());
  if (const auto twice = std::adjacent_find(all.begin(), all.end()); twice != all.end())
    return bad(text, "element " + std::to_string(*twice) + " is there twice");
  return array;
}

std::string to_string(const Array& array) {
  std::vector<std::string> parts;
  for (const Array::Range& range : array.ranges) {
    std::string part = std::to_string(range.first);
    if (range.last != range.first) part += "-" + std::to_string(range.last);
    if (range.step != 1) part += ":" + std::to_string(range.step);
    parts.push_back(std::move(part));
  }
  return base::join(parts, ",") + (array.at_once ? "%" + std::to_string(*array.at_once) : "");
}

std::size_t count_of(const Array& array) {
  std::size_t sum = 0;
  for (const Array::Range& range : array.ranges) sum += count(range);
  return sum;
}

std::vector<std::uint32_t> elements_of(const Array& array) {
  std::vector<std::uint32_t> list;
  for (const Array::Range& range : array.ranges)
    for (std::size_t i = 0; i < count(range); ++i)
      list.push_back(range.first + static_cast<std::uint32_t>(i) * range.step);
  return list;
}

}  // namespace mete::core
