// SPDX-License-Identifier: Apache-2.0
#include "simulate/report.h"

#include <gtest/gtest.h>

#include "simulate/chart.h"

namespace mete::simulate {
namespace {

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
    ++found;
  return found;
}

// Every tag that is opened is closed, in the right order.
std::string unbalanced(const std::string& html) {
  std::vector<std::string> open;
  for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const std::size_t end = html.find('>', at);
    if (end == std::string::npos) return "a tag does not end";
    const std::string tag = html.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find_first_of(" \n/", 1));
    if (tag.ends_with('/') || tag.starts_with('!') || name == "meta") continue;
    if (!tag.starts_with('/')) {
      open.push_back(name);
    } else {
      if (open.empty() || "/" + open.back() != tag) return tag;
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back();
}

TimedJob job(std::int64_t at_s) {
  TimedJob job;
  job.submitted = {at_s * 1000};
  return job;
}

TEST(Report, APageOfJobsWithTimesHasTheirChartsAndNeedsNothingElse) {
  Timed timed;
  timed.samples = {{WallTime{0}, 50, 10, 0, 1},
                   {WallTime{60'000}, 100, 0, 7, 2},
                   {WallTime{120'000}, 0, 0, 0, 0}};
  timed.lives = {{WallTime{0}, WallTime{60'000}, "", {{0, {0}}}},
                 {WallTime{100'000}, WallTime{120'000}, "", {{0, {0}}}}};
  Page page;
  page.title = "2x<H200>";
  page.waits = {{"as it was", {}}};
  const std::string html = report_html(page, {job(0), job(1)}, timed, {"1gpu", "share"});
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_EQ(count(html, "<svg"), 3u);
  EXPECT_NE(html.find("2x&lt;H200&gt;"), std::string::npos);
  EXPECT_NE(html.find("prefers-color-scheme:dark"), std::string::npos);
  EXPECT_NE(html.find("at most 7 in the queue"), std::string::npos);
  EXPECT_NE(html.find("a share, under 10 minutes: 100.0 %"), std::string::npos);
  for (const char* outside : {"http", "src=", "url(", "@import", "<script"})
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
  EXPECT_EQ(html.find("nan"), std::string::npos);
}

TEST(Report, APageOfJobsThatStayShowsWhatWasAskedFor) {
  Score score;
  for (int i = 0; i <= 130; ++i)
    score.curve.push_back({static_cast<double>(i), std::min(95.0, 1.0 * i), 3});
  score.accepted_pct = {{"cpu", 100}, {"8gpu", 75.2}};
  const std::string html = report_html({}, score);
  EXPECT_EQ(unbalanced(html), "");
  EXPECT_EQ(count(html, "<svg"), 2u);
  EXPECT_NE(html.find("8 cards: 75.2 % placed"), std::string::npos);
  EXPECT_NE(html.find("129.0 % asked for"), std::string::npos);
}

TEST(Report, NothingToShowIsStillAPage) {
  EXPECT_EQ(unbalanced(report_html({}, Score{})), "");
  EXPECT_EQ(unbalanced(report_html({}, {}, Timed{}, {})), "");
}

TEST(Chart, NumbersAreShort) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(0.25), "0.25");
  EXPECT_EQ(short_number(2.5), "2.5");
  EXPECT_EQ(short_number(1213), "1,213");
  EXPECT_EQ(short_number(1234567), "1,234,567");
}

}  // namespace
}  // namespace mete::simulate
