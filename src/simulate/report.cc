// SPDX-License-Identifier: Apache-2.0
// See report.h. The page is one string: a head with its style, the figures, then sections with
// charts (chart.h) and tables. Samples over time are reduced to kPoints intervals; waits are
// counted into spans from "at once" to "longer", by the size of the request.
#include "simulate/report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/time.h"
#include "simulate/chart.h"

namespace mete::simulate {

namespace {

constexpr std::size_t kPoints = 220;  // across a chart
// A calendar date rather than seconds since some start.
constexpr std::int64_t kCalendarMs = 315'532'800'000;  // 1980

constexpr std::string_view kStyle = R"(
:root{color-scheme:light dark;--page:#f6f6f4;--card:#fff;--text:#14130f;--soft:#5b5a54;--line:#e6e5e0;
--alloc:#2a78d6;--frag:#d9662b;--wait:#7a5fc7;--w0:#dbe9fb;--w1:#b5d2f6;--w2:#86b6ef;--w3:#5b98e4;--w4:#2f78d0;--w5:#1c5aa5;--w6:#0e3a72}
@media(prefers-color-scheme:dark){:root{--page:#151514;--card:#1e1e1d;--text:#f3f2ee;--soft:#b0afa7;--line:#33332f;
--alloc:#4a94ec;--frag:#e67a41;--wait:#a38bea;--w0:#16325a;--w1:#1c4a86;--w2:#2766b2;--w3:#3f86d8;--w4:#6fa9ea;--w5:#a3c9f4;--w6:#d8e8fc}}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--text);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:960px;margin:0 auto;padding:32px 20px 48px}h1{font-size:24px;font-weight:650;margin:0 0 4px;letter-spacing:-.01em}
h2{font-size:16px;font-weight:620;margin:0 0 2px}p{margin:0 0 10px;color:var(--soft)}.sub{margin-bottom:22px}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin-bottom:16px}
.figure,section{background:var(--card);border:1px solid var(--line);border-radius:10px}.figure{padding:14px 16px}
.figure b{display:block;font-size:23px;font-weight:640;letter-spacing:-.01em;font-variant-numeric:tabular-nums}
.figure span{display:block;color:var(--soft);font-size:13px}section{padding:18px 20px 14px;margin-bottom:16px}
svg{display:block;width:100%;min-width:640px;height:auto;font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;font-variant-numeric:tabular-nums}
svg text{fill:var(--soft)}.grid{stroke:var(--line);stroke-width:1}.point{fill:var(--text);fill-opacity:0}.point:hover{fill-opacity:.1}
.part:hover{opacity:.8}.key{display:flex;flex-wrap:wrap;gap:4px 16px;font-size:13px;color:var(--soft);margin:2px 0 10px}
.key i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px;vertical-align:-1px}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:14px}
th{font-weight:500;color:var(--soft);font-size:13px}td,th{text-align:right;padding:6px 0 6px 18px;border-bottom:1px solid var(--line);white-space:nowrap}
td:first-child,th:first-child{text-align:left;padding-left:0}tr:last-child td{border-bottom:0}footer{color:var(--soft);font-size:13px}
)";

std::string percent(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", value);
  return text;
}

std::string duration(double seconds) {
  return base::duration_in_words(static_cast<std::int64_t>(seconds + 0.5));
}

std::string head(const Page& page) {
  std::string text =
      "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">\n<title>" +
      html_text(page.title) + "</title>\n<style>" + std::string(kStyle) + "</style>\n<main>\n<h1>" +
      html_text(page.title) + "</h1>\n<p class=\"sub\">" + html_text(page.subtitle) +
      "</p>\n<div class=\"figures\">\n";
  for (const Figure& figure : page.figures)
    text += "<div class=\"figure\"><span>" + html_text(figure.name) + "</span><b>" +
            html_text(figure.value) + "</b><span>" + html_text(figure.note) + "</span></div>\n";
  return text + "</div>\n";
}

std::string foot() {
  return "<footer>Made by mete simulate. Fragmented: idle, and of no use to a random job of the "
         "list.</footer>\n</main>\n</html>\n";
}

struct Key {
  std::string colour;
  std::string name;
};

std::string section(const std::string& title, const std::string& about,
                    const std::vector<Key>& keys, const std::string& body) {
  std::string text =
      "<section>\n<h2>" + html_text(title) + "</h2>\n<p>" + html_text(about) + "</p>\n";
  if (!keys.empty()) {
    text += "<div class=\"key\">";
    for (const Key& key : keys)
      text += "<span><i style=\"background:var(" + key.colour + ")\"></i>" + html_text(key.name) +
              "</span>";
    text += "</div>\n";
  }
  // On a narrow screen a wide chart scrolls, and stays readable.
  return text + "<div class=\"scroll\">" + body + "</div></section>\n";
}

const std::vector<Key>& alloc_keys() {
  static const std::vector<Key> kKeys{{"--alloc", "given out"}, {"--frag", "fragmented"}};
  return kKeys;
}

// Sorts: without a card, a share, then by the number of cards.
struct BySize {
  static int size(const std::string& name) {
    if (name == "cpu") return -1;
    return name == "share" ? 0 : std::atoi(name.c_str());
  }
  bool operator()(const std::string& a, const std::string& b) const {
    return std::pair(size(a), a) < std::pair(size(b), b);
  }
};

// ---- time ------------------------------------------------------------------------------------

// One interval: means, and the maximum of the queue.
struct Bucket {
  double alloc = 0;
  double frag = 0;
  double waiting = 0;
};

std::vector<Bucket> buckets_of(const std::vector<Sample>& samples, std::size_t count) {
  std::vector<Bucket> buckets(count);
  const auto first = static_cast<double>(samples.front().at.ms);
  const double width = std::max(
      1.0, (static_cast<double>(samples.back().at.ms) - first) / static_cast<double>(count));
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const Sample& sample = samples[i];
    const double from = static_cast<double>(sample.at.ms) - first;
    const double to =
        i + 1 < samples.size() ? static_cast<double>(samples[i + 1].at.ms) - first : from;
    auto at = std::min(static_cast<std::size_t>(from / width), count - 1);
    for (double begin = from; at < count; ++at) {
      Bucket& bucket = buckets[at];
      bucket.waiting = std::max(bucket.waiting, static_cast<double>(sample.waiting));
      const double end = std::min(to, static_cast<double>(at + 1) * width);
      const double part = std::max(0.0, end - begin) / width;
      bucket.alloc += part * sample.alloc_pct;
      bucket.frag += part * sample.frag_pct;
      begin = end;
      if (end >= to) break;
    }
  }
  return buckets;
}

// Round steps, at most eight of them.
std::vector<AreaChart::Tick> time_ticks(WallTime first, WallTime last) {
  constexpr std::int64_t kMinute = 60'000;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  constexpr std::array kSteps{kMinute / 6, kMinute,    5 * kMinute, 15 * kMinute, 30 * kMinute,
                              kHour,       2 * kHour,  4 * kHour,   8 * kHour,    kDay,
                              2 * kDay,    5 * kDay,   10 * kDay,   25 * kDay,    50 * kDay,
                              100 * kDay,  250 * kDay, 500 * kDay,  1000 * kDay};
  std::int64_t step = kSteps.back();
  for (const std::int64_t each : kSteps)
    if ((last.ms - first.ms) / each <= 8) {
      step = each;
      break;
    }
  std::vector<AreaChart::Tick> ticks;
  const bool calendar = first.ms > kCalendarMs;
  const std::int64_t begin = calendar ? (first.ms + step - 1) / step * step : first.ms;
  for (std::int64_t at = begin; at <= last.ms; at += step) {
    const std::string time = to_string(WallTime{at});
    const std::string word =
        calendar
            ? (step >= kDay ? time.substr(0, 10) : time.substr(5, 5) + " " + time.substr(11, 5))
            : base::duration_in_words((at - first.ms) / 1000);
    ticks.push_back({static_cast<double>(at), word});
  }
  return ticks;
}

// 4, 8, 12, ..., 32, 40, 80, ...: whole numbers at each quarter, and little room above.
double round_top(double value) {
  for (double top = 4;; top *= 10)
    for (const double factor : {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0})
      if (value <= top * factor) return top * factor;
}

std::string time_charts(const std::vector<Sample>& samples) {
  if (samples.size() < 2 || samples.front().at == samples.back().at) return "";
  const std::vector<Bucket> buckets = buckets_of(samples, kPoints);
  AreaChart cards{
      "Cards given out and fragmented over time",       {}, {"--alloc", "--frag"}, 100, " %",
      time_ticks(samples.front().at, samples.back().at)};
  AreaChart line{"Jobs in the queue over time", {}, {"--wait"}, 4, "", cards.ticks};
  const auto first = static_cast<double>(samples.front().at.ms);
  const double width = (static_cast<double>(samples.back().at.ms) - first) / kPoints;
  double most = 0;
  for (std::size_t i = 0; i <= kPoints; ++i) {
    const Bucket& bucket = buckets[std::min(i, kPoints - 1)];
    const double x = first + width * static_cast<double>(i);
    const auto ms = static_cast<std::int64_t>(x);
    const std::string when =
        ms > kCalendarMs ? to_string(WallTime{ms}).substr(0, 16) : duration((x - first) / 1000);
    cards.points.push_back({x,
                            {bucket.alloc, bucket.frag},
                            when + ": " + percent(bucket.alloc) + " given out, " +
                                percent(bucket.frag) + " fragmented"});
    line.points.push_back({x,
                           {bucket.waiting},
                           when + ": at most " + short_number(bucket.waiting) + " in the queue"});
    most = std::max(most, bucket.waiting);
  }
  line.top = round_top(most);
  return section("Cards over time", "Percent of all cards, the mean of each interval.",
                 alloc_keys(), area_svg(cards)) +
         section("Queue", "Waiting jobs, the maximum of each interval.", {}, area_svg(line));
}

// ---- waits -----------------------------------------------------------------------------------

struct Span {
  double most_s;
  const char* name;
};
constexpr std::array<Span, 7> kSpans{{{1, "at once"},
                                      {60, "under a minute"},
                                      {600, "under 10 minutes"},
                                      {3600, "under an hour"},
                                      {6 * 3600, "under 6 hours"},
                                      {86'400, "under a day"},
                                      {1e18, "longer"}}};

std::string waits_chart(const std::vector<TimedJob>& jobs, const Timed& timed,
                        const std::vector<std::string>& classes) {
  std::map<std::string, std::vector<double>, BySize> waits;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if (timed.lives[i].started)
      waits[classes[i]].push_back(
          static_cast<double>(timed.lives[i].started->ms - jobs[i].submitted.ms) / 1000);
  std::vector<Key> keys;
  std::vector<std::string> colours;
  for (std::size_t i = 0; i < kSpans.size(); ++i) {
    colours.push_back("--w" + std::to_string(i));
    keys.push_back({colours.back(), kSpans[i].name});
  }
  std::vector<StackedBar> bars;
  for (const auto& [name, list] : waits) {
    StackedBar bar{class_in_words(name),
                   short_number(static_cast<double>(list.size())) + " jobs",
                   std::vector<double>(kSpans.size()),
                   {}};
    for (const double wait : list)
      for (std::size_t i = 0; i < kSpans.size(); ++i)
        if (wait <= kSpans[i].most_s) {
          bar.parts[i] += 100.0 / static_cast<double>(list.size());
          break;
        }
    for (std::size_t i = 0; i < kSpans.size(); ++i)
      bar.labels.push_back(bar.name + ", " + kSpans[i].name + ": " + percent(bar.parts[i]));
    bars.push_back(std::move(bar));
  }
  return section("Waits", "From arrival to start, by what was asked for.", keys,
                 bars_svg("Waits by what was asked for", bars, colours));
}

std::string waits_table(const std::vector<std::pair<std::string, Waits>>& rows) {
  std::string body =
      "<table><tr><th></th><th>jobs</th><th>waited</th><th>mean</th>"
      "<th>half</th><th>90 %</th><th>99 %</th><th>longest</th></tr>\n";
  for (const auto& [name, waits] : rows) {
    body += "<tr><td>" + html_text(name) + "</td><td>" +
            short_number(static_cast<double>(waits.jobs)) + "</td><td>" +
            short_number(static_cast<double>(waits.waited)) + "</td>";
    for (const double value : {waits.mean_s, waits.p50_s, waits.p90_s, waits.p99_s, waits.max_s})
      body += "<td>" + duration(value) + "</td>";
    body += "</tr>\n";
  }
  return section("Waits in numbers",
                 "The longest wait of the fastest half, 90 % and 99 % of the jobs.", {},
                 body + "</table>\n");
}

// ---- jobs that stay --------------------------------------------------------------------------

std::string demand_chart(const std::vector<Score::Point>& curve) {
  if (curve.size() < 2) return "";
  AreaChart chart{"Cards given out and fragmented as more is asked for",
                  {},
                  {"--alloc", "--frag"},
                  100,
                  " %",
                  {}};
  const std::size_t step = std::max<std::size_t>(1, curve.size() / kPoints);
  for (std::size_t i = 0; i < curve.size(); i = i + step < curve.size() ? i + step : curve.size()) {
    const Score::Point& point = curve[i];
    chart.points.push_back({point.asked,
                            {point.alloc, point.frag},
                            percent(point.asked) + " asked for: " + percent(point.alloc) +
                                " given out, " + percent(point.frag) + " fragmented"});
  }
  const double last = chart.points.back().x;
  const double width = last > 200 ? last / 8 : last > 60 ? 20 : last > 20 ? 10 : last / 4;
  for (double x = 0; x <= last + 0.01 && width > 0; x += width)
    if (x >= chart.points.front().x) chart.ticks.push_back({x, short_number(x) + " %"});
  return section("Cards as more is asked for", "What had been asked for, in percent of all cards.",
                 alloc_keys(), area_svg(chart));
}

std::string placed_chart(const std::map<std::string, double>& accepted) {
  std::vector<StackedBar> bars;
  for (const auto& [name, value] :
       std::map<std::string, double, BySize>(accepted.begin(), accepted.end())) {
    const std::string label = class_in_words(name) + ": " + percent(value) + " placed";
    bars.push_back({class_in_words(name), percent(value), {value}, {label}});
  }
  return section("Placed jobs", "Percent of the jobs that arrived, by request.", {},
                 bars_svg("Placed jobs", bars, {"--alloc"}));
}

}  // namespace

std::string class_in_words(const std::string& name) {
  if (name == "cpu") return "no card";
  if (name == "share") return "a share";
  const std::string count = name.substr(0, name.find('g'));
  return count + (count == "1" ? " card" : " cards");
}

std::string report_html(const Page& page, const Score& score) {
  return head(page) + demand_chart(score.curve) + placed_chart(score.accepted_pct) + foot();
}

std::string report_html(const Page& page, const std::vector<TimedJob>& jobs, const Timed& timed,
                        const std::vector<std::string>& classes) {
  return head(page) + time_charts(timed.samples) + waits_chart(jobs, timed, classes) +
         waits_table(page.waits) + foot();
}

}  // namespace mete::simulate
