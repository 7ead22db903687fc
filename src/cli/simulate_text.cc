// SPDX-License-Identifier: Apache-2.0
// See simulate_text.h. SimulateReport has the figures of one simulation, and with times also the
// waits. The text, the JSON document and the HTML page are each made from it by one function;
// add_timed(), waits_table() and verdict() have the parts for jobs with times.
#include "cli/simulate_text.h"

#include <algorithm>
#include <cstdio>

#include "base/time.h"
#include "cli/json.h"
#include "cli/table.h"
#include "simulate/chart.h"
#include "simulate/report.h"

namespace mete::cli {

namespace {

// The value that `percent` % of the times do not exceed.
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

std::string waits_json(const simulate::Waits& waits) {
  JsonObject json;
  json.number("jobs", waits.jobs).number("waited", waits.waited);
  json.raw("mean_s", decimal(waits.mean_s, 3)).raw("p50_s", decimal(waits.p50_s, 3));
  json.raw("p90_s", decimal(waits.p90_s, 3)).raw("p99_s", decimal(waits.p99_s, 3));
  json.raw("max_s", decimal(waits.max_s, 3));
  return json.str();
}

void add_timed(JsonObject& json, const TimedReport& timed) {
  if (!timed.place.empty()) json.text("place", timed.place);
  json.raw("span_s", decimal(static_cast<double>(timed.mean.span_ms) / 1000, 3));
  json.raw("alloc_mean", decimal(timed.mean.alloc_pct, 3));
  json.raw("frag_mean", decimal(timed.mean.frag_pct, 3));
  json.raw("waiting_mean", decimal(timed.mean.waiting, 3));
  json.raw("waits", waits_json(timed.waits)).number("left_waiting", timed.left_waiting);
  if (timed.recorded) {
    json.raw("recorded_waits", waits_json(*timed.recorded)).number("left_out", timed.left_out);
    if (timed.today) json.raw("today_waits", waits_json(*timed.today));
  }
}

std::string duration(double seconds) {
  return base::duration_in_words(static_cast<std::int64_t>(seconds + 0.5));
}

std::string waits_table(const TimedReport& timed) {
  Table table({{"", Align::kLeft},
               {"JOBS", Align::kRight},
               {"WAITED", Align::kRight},
               {"MEAN", Align::kRight},
               {"HALF", Align::kRight},
               {"90 %", Align::kRight},
               {"99 %", Align::kRight},
               {"LONGEST", Align::kRight}});
  const auto row = [&](const std::string& what, const simulate::Waits& waits) {
    table.add({what, std::to_string(waits.jobs), std::to_string(waits.waited),
               duration(waits.mean_s), duration(waits.p50_s), duration(waits.p90_s),
               duration(waits.p99_s), duration(waits.max_s)});
  };
  if (timed.recorded) row("as it was", *timed.recorded);
  if (timed.today) row("the cards of today", *timed.today);
  row(timed.place.empty() ? "simulated" : timed.place, timed.waits);
  return table.text(std::nullopt);
}

// One sentence: whether it would have helped.
std::string verdict(const TimedReport& timed) {
  if (!timed.recorded) return "";
  const simulate::Waits& before = timed.today ? *timed.today : *timed.recorded;
  const double saved = before.mean_s - timed.waits.mean_s;
  if (before.mean_s < 1) return "\n\nnobody waited to speak of before either";
  if (saved > 0.01 * before.mean_s)
    return "\n\nwaits would have been shorter by " + duration(saved) + " on average, " +
           decimal(100 * saved / before.mean_s, 0) + " %";
  if (saved < -0.01 * before.mean_s)
    return "\n\nwaits would have been longer by " + duration(-saved) + " on average";
  return "\n\nwaits would have been about the same";
}

std::string timed_text(const SimulateReport& report) {
  const TimedReport& timed = *report.timed;
  std::string text = report.policy + " ran " + std::to_string(timed.waits.jobs) + " of " +
                     std::to_string(report.arrivals) + " jobs on " +
                     std::to_string(report.score.cards) + " cards, in " +
                     duration(static_cast<double>(timed.mean.span_ms) / 1000) + "\n\n";
  text += line("of the cards given out, on average", percent(timed.mean.alloc_pct));
  text += line("fragmented, on average", percent(timed.mean.frag_pct));
  text += line("in the queue, on average", decimal(timed.mean.waiting, 1) + " jobs");
  if (report.score.rejected > 0)
    text += line("refused, since they can never fit",
                 std::to_string(report.score.rejected) + " jobs; " + timed.refused_why);
  if (timed.left_waiting > 0)
    text += line("never started", std::to_string(timed.left_waiting) + " jobs");
  if (timed.left_out > 0)
    text += line("left out, since they say too little", std::to_string(timed.left_out) + " jobs");
  return text + "\n" + waits_table(timed) + verdict(timed);
}

}  // namespace

std::string decimal(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

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
  if (report.timed) add_timed(json, *report.timed);
  return json.str();
}

std::string simulate_text(const SimulateReport& report) {
  if (report.timed) return timed_text(report);
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

namespace {

simulate::Page page_of(const SimulateReport& report, const std::string& at) {
  const auto count = [](std::uint64_t value) {
    return simulate::short_number(static_cast<double>(value));
  };
  simulate::Page page;
  const bool named = report.timed && !report.timed->place.empty();
  page.title = named ? report.timed->place
                     : count(report.nodes) + (report.nodes == 1 ? " node with " : " nodes with ") +
                           count(report.score.cards) + " cards";
  page.subtitle = count(report.arrivals) + " jobs, placed by " + report.policy + ". " +
                  at.substr(0, 10) + ", " + at.substr(11, 5) + " UTC.";
  return page;
}

}  // namespace

std::string simulate_page(const SimulateReport& report, const std::string& at) {
  simulate::Page page = page_of(report, at);
  const simulate::Score& score = report.score;
  page.figures = {{"given out at the end", percent(score.final_alloc), "of all cards"},
                  {"given out at 130 %", percent(score.alloc130), "when that much was asked for"},
                  {"fragmented at 130 %", percent(score.frag130), "idle and of no use"},
                  {"first refused at", percent(score.first_reject_at), "asked for"},
                  {"refused", simulate::short_number(static_cast<double>(score.rejected)),
                   "of " + simulate::short_number(static_cast<double>(report.arrivals)) + " jobs"}};
  return simulate::report_html(page, score);
}

std::string simulate_page(const SimulateReport& report, const std::string& at,
                          const std::vector<simulate::TimedJob>& jobs, const simulate::Timed& timed,
                          const std::vector<std::string>& classes) {
  simulate::Page page = page_of(report, at);
  const TimedReport& own = *report.timed;
  page.figures = {
      {"given out", decimal(own.mean.alloc_pct, 1) + " %", "of all cards, on average"},
      {"fragmented", decimal(own.mean.frag_pct, 1) + " %", "idle and of no use, on average"},
      {"mean wait", duration(own.waits.mean_s),
       simulate::short_number(static_cast<double>(own.waits.waited)) + " jobs waited"},
      {"longest wait", duration(own.waits.max_s), "99 of 100: " + duration(own.waits.p99_s)},
      {"never ran", std::to_string(report.score.rejected + own.left_waiting),
       std::to_string(report.score.rejected) + " can never fit"}};
  if (own.recorded) page.waits.emplace_back("as it was", *own.recorded);
  if (own.today) page.waits.emplace_back("the cards of today, simulated", *own.today);
  page.waits.emplace_back(own.place.empty() ? "simulated" : own.place, own.waits);
  return simulate::report_html(page, jobs, timed, classes);
}

std::string progress_bar(std::size_t done, std::size_t all) {
  constexpr std::size_t kWidth = 30;
  const std::size_t full = all == 0 ? kWidth : done * kWidth / all;
  std::string number = std::to_string(all == 0 ? 100 : done * 100 / all);
  number.insert(0, number.size() < 3 ? 3 - number.size() : 0, ' ');
  // The most important part first: a narrow terminal cuts the rest.
  return "simulating " + number + " % [" + std::string(full, '#') +
         std::string(kWidth - full, '.') + "] " + std::to_string(done) + " of " +
         std::to_string(all);
}

}  // namespace mete::cli
