// SPDX-License-Identifier: Apache-2.0
// See demo_report.h.
#include "cli/demo_report.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/text.h"
#include "cli/json.h"
#include "cli/table.h"

namespace mete::cli {

namespace {

constexpr std::size_t kLongLine = 96;

bool is_terminal(int fd) {
  const char* term = std::getenv("TERM");
  return isatty(fd) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

bool wants_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  return (no_colour == nullptr || *no_colour == '\0') && is_terminal(STDOUT_FILENO);
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
      colour_(wants_colour()),
      shows_progress_(!output.json() && is_terminal(STDERR_FILENO)) {}

std::string DemoReport::styled(std::string_view style, const std::string& text) const {
  return colour_ ? "\033[" + std::string(style) + "m" + text + "\033[0m" : text;
}

void DemoReport::print(const std::string& text) const {
  end_progress();
  if (!output_.json()) output_.data(text);
}

void DemoReport::step(const std::string& title) {
  steps_.push_back({title, {}, {}});
  print("\n" + styled("1", std::to_string(steps_.size()) + ". " + title));
}

void DemoReport::command(const std::string& text) {
  steps_.back().commands.push_back(text);
  print("   $ " + styled("1", text));
}

void DemoReport::quote(const std::string& line) const {
  std::string text = "   | " + printable(line);
  if (text.size() > kLongLine)
    for (std::size_t at = 0; (at = text.find("; ", at)) != std::string::npos; ++at)
      text.replace(at, 2, ";\n   |   ");
  print(styled("2", text));
}

bool DemoReport::check(bool holds, const std::string& what, const std::string& evidence) {
  ++checks_;
  if (!holds) ++failed_;
  steps_.back().checks.push_back({what, holds, evidence});
  if (holds)
    print("   " + styled("32", "ok") + "    " + what);
  else
    print("   " + styled("1;31", "FAIL") + "  " + what + "\n         seen: " + evidence);
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
