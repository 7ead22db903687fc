// SPDX-License-Identifier: Apache-2.0
// See simulate_text.h.
#include "cli/simulate_text.h"

#include <algorithm>
#include <cstdio>

#include "cli/json.h"

namespace mete::cli {

namespace {

std::string decimal(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

// The value that so many of a hundred do not exceed.
std::uint32_t percentile(std::vector<std::uint32_t> times, std::size_t percent) {
  if (times.empty()) return 0;
  const std::size_t at = std::min(times.size() * percent / 100, times.size() - 1);
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(at), times.end());
  return times[at];
}

double per_second(const SimulateReport& report) {
  return report.cpu_s > 0 ? static_cast<double>(report.arrivals) / report.cpu_s : 0;
}

void add(JsonObject& json, std::string_view key, const std::optional<double>& value) {
  if (value) json.raw(key, decimal(*value, 2));
}

std::string line(std::string_view what, const std::string& value) {
  std::string text(what);
  text.resize(std::max<std::size_t>(text.size() + 1, 34), ' ');
  return text + value + "\n";
}

std::string percent(const std::optional<double>& value) {
  return value ? decimal(*value, 2) + " %" : "-";
}

}  // namespace

std::string simulate_json(const SimulateReport& report, const std::string& at) {
  const simulate::Score& score = report.score;
  JsonObject accepted;
  for (const auto& [name, value] : score.accepted_pct) accepted.raw(name, decimal(value, 2));
  JsonObject json;
  json.text("schema", "mete.simulate/1").text("at", at);
  json.text("policy", report.policy).text("mix", report.mix).number("seed", report.seed);
  json.number("nodes", report.nodes).number("cards", score.cards);
  json.number("arrivals", report.arrivals).raw("final_alloc", decimal(score.final_alloc, 3));
  add(json, "alloc100", score.alloc100);
  add(json, "alloc130", score.alloc130);
  add(json, "frag100", score.frag100);
  add(json, "frag130", score.frag130);
  add(json, "first_reject_at", score.first_reject_at);
  json.raw("accepted_pct", accepted.str()).number("rejected", score.rejected);
  json.number("moves", score.moves)
      .raw("moved_gpu", decimal(score.moved_gpu, 3))
      .raw("cpu_s", decimal(report.cpu_s, 4));
  json.raw("decisions_per_s", decimal(per_second(report), 0));
  json.number("p50_ns", percentile(report.times_ns, 50));
  json.number("p99_ns", percentile(report.times_ns, 99));
  return json.str();
}

std::string simulate_text(const SimulateReport& report) {
  const simulate::Score& score = report.score;
  std::string text = report.policy + " placed " + std::to_string(report.arrivals - score.rejected) +
                     " of " + std::to_string(report.arrivals) + " jobs on " +
                     std::to_string(report.nodes) + " nodes with " + std::to_string(score.cards) +
                     " cards\n\n";
  text += line("of the cards given out, at the end", percent(score.final_alloc));
  text += line("  when 100 % was asked for", percent(score.alloc100));
  text += line("  when 130 % was asked for", percent(score.alloc130));
  text += line("fragmented, at 100 %", percent(score.frag100));
  text += line("fragmented, at 130 %", percent(score.frag130));
  text += line("first refused at", percent(score.first_reject_at));
  for (const auto& [name, value] : score.accepted_pct)
    text +=
        line("placed of " + (name == "cpu"     ? std::string("jobs without a card")
                             : name == "share" ? std::string("shares of a card")
                                               : "jobs with " + name.substr(0, name.size() - 3) +
                                                     (name == "1gpu" ? " card" : " cards")),
             percent(value));
  if (score.moves > 0)
    text += line("jobs moved to make room",
                 std::to_string(score.moves) + ", " + decimal(score.moved_gpu, 1) + " cards");
  text += line("decisions", decimal(per_second(report), 0) + " a second, " +
                                decimal(percentile(report.times_ns, 99) / 1000.0, 1) +
                                " us at most for 99 of 100");
  text.pop_back();
  return text;
}

std::string progress_bar(std::size_t done, std::size_t all) {
  constexpr std::size_t kWidth = 30;
  const std::size_t full = all == 0 ? kWidth : done * kWidth / all;
  std::string number = std::to_string(all == 0 ? 100 : done * 100 / all);
  number.insert(0, number.size() < 3 ? 3 - number.size() : 0, ' ');
  return "simulating [" + std::string(full, '#') + std::string(kWidth - full, '.') + "] " + number +
         " %  " + std::to_string(done) + " of " + std::to_string(all);
}

}  // namespace mete::cli
