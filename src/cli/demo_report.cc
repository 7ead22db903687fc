// SPDX-License-Identifier: Apache-2.0
// See demo_report.h. Each call prints at once, wrapped to the terminal's width and styled, or with
// -o json only adds to the lists from which document() is made at the end. progress() draws one
// line on stderr that the next output erases.
#include "cli/demo_report.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/text.h"
#include "cli/json.h"
#include "cli/output.h"
#include "cli/table.h"

namespace mete::cli {

namespace {

constexpr std::size_t kWidth = 100;  // without a terminal, and at most on a wide one

// Wraps words to `width` characters: the first line begins with `first`, the others with `next`.
std::string wrapped(std::string_view first, std::string_view next, std::string_view text,
                    std::size_t width) {
  std::string result(first);
  std::size_t column = first.size();
  bool fresh = true;
  for (const std::string_view word : base::split(text, ' ')) {
    if (!fresh && column + 1 + word.size() > width) {
      result += "\n" + std::string(next);
      column = next.size();
      fresh = true;
    }
    result += (fresh ? "" : " ") + std::string(word);
    column += word.size() + (fresh ? 0 : 1);
    fresh = false;
  }
  return result;
}

std::string indented(const std::string& text, std::string_view by) {
  std::vector<std::string> lines;
  for (const std::string_view line : base::split(text, '\n'))
    lines.push_back(std::string(by) + std::string(line));
  return base::join(lines, "\n");
}

}  // namespace

DemoReport::DemoReport(const Output& output)
    : output_(output),
      colour_(wants_colour(STDOUT_FILENO)),
      shows_progress_(!output.json() && is_terminal(STDERR_FILENO)),
      width_(std::min(stdout_width().value_or(kWidth), kWidth)) {}

std::string DemoReport::styled(std::string_view style, const std::string& text) const {
  return colour_ ? "\033[" + std::string(style) + "m" + text + "\033[0m" : text;
}

void DemoReport::print(const std::string& text) const {
  end_progress();
  if (!output_.json()) output_.data(text);
}

void DemoReport::intro(const std::string& text) const { print(wrapped("", "", text, width_)); }

void DemoReport::step(const std::string& title) {
  steps_.push_back({title, {}, {}});
  print("\n" + styled("1", wrapped(std::to_string(steps_.size()) + ". ", "   ", title, width_)));
}

void DemoReport::command(const std::string& text) {
  steps_.back().commands.push_back(text);
  print("   $ " + styled("1", text));
}

void DemoReport::quote(const std::string& line) const {
  const std::string text = printable(line);
  std::vector<std::string> parts;
  if (text.size() + 5 <= width_) {
    parts.push_back("   | " + text);
  } else {  // a message of mete lists cards with semicolons between
    for (std::size_t begin = 0, end = 0; end != std::string::npos; begin = end + 2) {
      end = text.find("; ", begin);
      const std::string part =
          end == std::string::npos ? text.substr(begin) : text.substr(begin, end - begin) + ";";
      parts.push_back(wrapped(parts.empty() ? "   | " : "   |   ", "   |   ", part, width_));
    }
  }
  print(styled("2", base::join(parts, "\n")));
}

bool DemoReport::check(bool holds, const std::string& what, const std::string& evidence) {
  ++checks_;
  if (!holds) ++failed_;
  steps_.back().checks.push_back({what, holds, evidence});
  // The colour is inserted afterwards: it has no width.
  std::string line = wrapped(holds ? "   ok    " : "   FAIL  ", "         ", what, width_);
  line.replace(3, holds ? 2 : 4, holds ? styled("32", "ok") : styled("1;31", "FAIL"));
  if (!holds) line += "\n" + wrapped("         seen: ", "         ", printable(evidence), width_);
  print(line);
  return holds;
}

void DemoReport::jobs(std::vector<DemoJob> jobs) {
  jobs_ = std::move(jobs);
  Table table({{"PROGRAM"}, {"GPU"}, {"SHARE", Align::kRight}, {"PEAK", Align::kRight}, {"ENDED"}});
  for (const DemoJob& job : jobs_)
    table.add({job.name, job.request, to_string(job.share), job.peak ? to_string(*job.peak) : "",
               job.outcome});
  print(styled("2", indented(table.text(std::nullopt), "   | ")));
}

void DemoReport::progress(std::string_view what, int seconds) const {
  if (!shows_progress_) return;
  drawn_ = true;
  std::string text = "\r\033[K   ... " + std::string(what);
  if (seconds > 0) text += " (" + std::to_string(seconds) + " s)";
  (void)std::fputs(text.c_str(), stderr);
  (void)std::fflush(stderr);
}

void DemoReport::end_progress() const {
  if (std::exchange(drawn_, false)) (void)std::fputs("\r\033[K", stderr);
}

std::string DemoReport::document(bool simulated, const std::string& card_name,
                                 Bytes capacity) const {
  std::vector<std::string> steps;
  for (const Step& step : steps_) {
    std::vector<std::string> commands;
    for (const std::string& command : step.commands) commands.push_back(json_string(command));
    std::vector<std::string> checks;
    for (const Check& check : step.checks)
      checks.push_back(JsonObject()
                           .text("what", check.what)
                           .text("verdict", check.holds ? "ok" : "failed")
                           .text("evidence", check.evidence)
                           .str());
    steps.push_back(JsonObject()
                        .text("title", step.title)
                        .raw("commands", json_array(commands))
                        .raw("checks", json_array(checks))
                        .str());
  }
  std::vector<std::string> jobs;
  for (const DemoJob& job : jobs_) {
    JsonObject json;
    json.text("name", job.name).text("request", job.request).text("outcome", job.outcome);
    json.number("bytes", job.share.count());
    if (job.peak) json.number("peak_bytes", job.peak->count());
    jobs.push_back(json.str());
  }
  return JsonObject()
      .text("schema", "mete.demo/1")
      .text("at", timestamp())
      .raw("simulated", simulated ? "true" : "false")
      .text("card_name", card_name)
      .number("card_capacity_bytes", capacity.count())
      .number("ok", checks_ - failed_)
      .number("failed", failed_)
      .raw("steps", json_array(steps))
      .raw("jobs", json_array(jobs))
      .str();
}

}  // namespace mete::cli
