// SPDX-License-Identifier: Apache-2.0
// read_curve() of report.h. A program writes these lines, so nothing is trusted: a line that is too
// long, is not JSON or is nested too deeply is left out.
#include <algorithm>
#include <cmath>

#include "sweep/report.h"
#include "sweep/results.h"
#include "wire/fields.h"

namespace mete::sweep {

namespace {

constexpr std::size_t kMaxLine = 65'536;  // bytes

std::optional<double> number_of(const wire::Json& object, std::string_view key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const auto value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

std::vector<CurvePoint> read_curve(std::string_view lines, std::string_view metric,
                                   std::size_t most) {
  std::vector<CurvePoint> points;
  for (std::uint64_t number = 1; !lines.empty(); ++number) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(lines.size(), end + 1));
    if (line.empty() || line.size() > kMaxLine) continue;
    const Result<wire::Json> json = wire::parse_json(line);
    if (!json || !json->is_object()) continue;
    if (const std::optional<double> value = number_of(*json, metric))
      points.push_back({number_of(*json, "step").value_or(static_cast<double>(number)), *value});
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const CurvePoint& a, const CurvePoint& b) { return a.step < b.step; });
  std::vector<CurvePoint> latest;  // of each step
  for (const CurvePoint& point : points) {
    if (!latest.empty() && latest.back().step == point.step)
      latest.back() = point;
    else
      latest.push_back(point);
  }
  if (most == 0) return {};
  if (most == 1 && !latest.empty()) return {latest.back()};
  return evenly(latest, most);
}

}  // namespace mete::sweep
