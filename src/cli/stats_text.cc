// SPDX-License-Identifier: Apache-2.0
// See stats_text.h.
#include "cli/stats_text.h"

#include <vector>

#include "base/text.h"
#include "cli/table.h"
#include "core/job/job.h"

namespace mete::cli {

namespace {

using wire::StatsDocument;

std::string counts(const std::map<std::string, std::uint64_t>& by_name) {
  std::vector<std::string> parts;
  for (const auto& [name, count] : by_name)
    if (count != 0) parts.push_back(std::to_string(count) + " " + name);
  return base::join(parts, ", ");
}

std::string seconds(const std::optional<std::uint64_t>& value) {
  return value ? base::duration_in_words(static_cast<std::int64_t>(*value)) : "?";
}

std::string waits_text(const StatsDocument::Waits& waits) {
  if (waits.count == 0) return "";
  return "half of " + std::to_string(waits.count) + " jobs within " + seconds(waits.median_s) +
         ", 90% within " + seconds(waits.p90_s) + ", the longest " + seconds(waits.longest_s);
}

// "3.2 GiB·h": the measure of fair share.
std::string gpu_time(std::uint64_t mib_seconds) {
  const std::uint64_t tenths = mib_seconds / 1024 * 10 / 3600;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10);
}

}  // namespace

std::string eta_text(const StatsDocument::Forecasts& forecasts) {
  const std::string pct = std::to_string(core::kForecastPct);
  if (forecasts.given == 0) return "no job has started yet that was told when it would";
  const std::uint64_t held_pct = forecasts.held * 100 / forecasts.given;
  const std::uint32_t hundredths = forecasts.factor_milli / 10;
  return std::to_string(forecasts.held) + " of " + std::to_string(forecasts.given) +
         " jobs started by the time they were told (" + std::to_string(held_pct) +
         "%; it is meant to be " + pct + "%), margins are widened " +
         std::to_string(hundredths / 100) + "." + (hundredths % 100 < 10 ? "0" : "") +
         std::to_string(hundredths % 100) + " times";
}

std::string stats_text(const StatsDocument& document) {
  std::string text;
  const auto add = [&text](std::string_view key, const std::string& value) {
    if (!value.empty()) text.append(text.empty() ? "" : "\n").append(key).append(value);
  };
  const std::string states = counts(document.states);
  add("jobs       ", states.empty() ? "none" : states);
  add("outcomes   ", counts(document.outcomes));
  add("waits      ", waits_text(document.waits));
  add("forecasts  ", eta_text(document.forecasts));
  if (document.users.empty()) return text;
  Table table({{"USER", Align::kLeft, 16},
               {"PENDING", Align::kRight},
               {"RUNNING", Align::kRight},
               {"ENDED", Align::kRight},
               {"GIB-HOURS", Align::kRight}});
  for (const StatsDocument::User& user : document.users)
    table.add({user.user, std::to_string(user.pending), std::to_string(user.running),
               std::to_string(user.ended), gpu_time(user.mib_seconds)});
  return text + "\n\n" + table.text({});
}

}  // namespace mete::cli
