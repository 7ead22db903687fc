// SPDX-License-Identifier: Apache-2.0
// See show_text.h. show_text() adds the lines in a fixed order: what happens to the job now, its
// cards and processes, its request, its logs and attempts, notes and advice. Lines leaves out a
// line without a value, so that a helper returns "" for what does not apply.
#include "cli/show_text.h"

#include <string_view>
#include <vector>

#include "base/moment.h"
#include "base/text.h"
#include "cli/table.h"
#include "wire/job_text.h"

namespace mete::cli {

namespace {

using core::Job;
using core::JobState;

// "key       value" lines; empty values are left out. Control characters in values are made
// harmless.
class Lines {
 public:
  void add(std::string_view key, const std::string& value) {
    if (value.empty()) return;
    constexpr std::size_t kColumn = 12;
    text_.append(text_.empty() ? "" : "\n").append("  ").append(key);
    text_.append(key.size() < kColumn ? kColumn - key.size() : 1, ' ').append(printable(value));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string times_text(const Job& job, WallTime now) {
  std::vector<std::string> parts{"submitted " + moment_to_the_second(job.submitted, now)};
  if (job.started) parts.push_back("started " + moment_to_the_second(*job.started, now));
  if (job.ended) parts.push_back("ended " + moment_to_the_second(*job.ended, now));
  if (job.exit && job.exit->ran_ms)
    parts.push_back("ran " +
                    base::duration_in_words(static_cast<std::int64_t>(*job.exit->ran_ms) / 1000));
  return base::join(parts, ", ");
}

// "card 0: 55.9 GiB, used 12 GiB, peak 20 GiB"
std::string grant_text(const wire::JobView& view, std::size_t i) {
  const core::GrantedCard& card = view.job.grant[i];
  std::string text = "card " + std::to_string(card.index) + ": " + to_string(card.bytes);
  if (card.whole) text += " (the whole card)";
  if (i < view.used.size() && view.used[i]) text += ", used " + to_string(*view.used[i]);
  if (view.job.exit && i < view.job.exit->peaks.size())
    text += ", peak " + to_string(view.job.exit->peaks[i]);
  return text;
}

std::string after_text(const core::JobSpec& spec) {
  std::vector<std::string> parts;
  for (const core::After& after : spec.after)
    parts.push_back(to_string(after.id) + ":" + std::string(to_string(after.when)));
  return base::join(parts, ", ");
}

std::string limits_text(const core::JobSpec& spec) {
  std::vector<std::string> parts;
  if (spec.time_s)
    parts.push_back("time " + base::duration_in_words(static_cast<std::int64_t>(*spec.time_s)));
  if (spec.request.cpus) parts.push_back(std::to_string(*spec.request.cpus) + " CPUs");
  if (spec.request.ram) parts.push_back("memory " + to_string(*spec.request.ram));
  return base::join(parts, ", ");
}

std::string again_text(const core::JobSpec& spec) {
  std::vector<std::string> parts;
  if (spec.retries != 0)
    parts.push_back("up to " + std::to_string(spec.retries) + " times after a failure");
  if (spec.retry_gpu_pct)
    parts.push_back(std::to_string(*spec.retry_gpu_pct) + "% of the memory after gpu-oom");
  if (spec.requeue) parts.emplace_back("after a reboot");
  return base::join(parts, ", ");
}

// "1: gpu-oom 1, 14:05:00 to 14:06:10, peak 8 GiB"
std::string attempt_text(const core::Attempt& attempt, WallTime now) {
  std::string text = wire::outcome_text(attempt.outcome, attempt.exit) + ", ";
  if (attempt.started) text += moment_to_the_second(*attempt.started, now) + " to ";
  text += moment_to_the_second(attempt.ended, now);
  if (attempt.exit)
    for (const Bytes& peak : attempt.exit->peaks) text += ", peak " + to_string(peak);
  if (attempt.exit && !attempt.exit->note.empty()) text += "; " + attempt.exit->note;
  return text;
}

std::string counts_text(const std::map<std::string, std::uint64_t>& counts) {
  std::vector<std::string> parts;
  for (const auto& [state, count] : counts) parts.push_back(std::to_string(count) + " " + state);
  return base::join(parts, ", ");
}

void add_spec(Lines& lines, const Job& job, WallTime now) {
  const core::JobSpec& spec = *job.spec;
  lines.add("command", base::join(spec.command, " "));
  lines.add("folder", spec.folder);
  if (spec.request.where) lines.add("where", spec.request.where->text());
  if (spec.array) lines.add("array", to_string(*spec.array));
  lines.add("after", after_text(spec));
  if (spec.begin) lines.add("begin", "not before " + moment(*spec.begin, now));
  if (spec.deadline) lines.add("deadline", moment(*spec.deadline, now));
  lines.add("limits", limits_text(spec));
  lines.add("runs again", again_text(spec));
  if (job.priority != 0) lines.add("priority", std::to_string(job.priority));
  for (const auto& [key, value] : spec.labels) lines.add("label", key + "=" + value);
}

void add_process(Lines& lines, const wire::ShowDocument& document) {
  for (const wire::ShowDocument::Process& process : document.processes)
    lines.add("process", std::to_string(process.pid) +
                             (process.used ? ", used " + to_string(*process.used) : ""));
}

}  // namespace

std::string show_text(const wire::ShowDocument& document) {
  const wire::JobView& view = document.view;
  const Job& job = view.job;
  const WallTime now = document.at;
  Lines lines;
  lines.add("times", times_text(job, now));
  if (job.state == JobState::kParked || job.state == JobState::kPending)
    lines.add(job.state == JobState::kParked ? "parked" : "waits for",
              wire::reason_text(view, now));
  for (const core::Escape& escape : job.escapes) lines.add("escape", to_string(escape));
  if (job.escapes.empty() || job.outcome)
    lines.add(job.outcome ? "ended" : "remark", wire::remark_text(view.remark, now));
  if (job.unparkable)
    lines.add("park",
              (job.unparkable->standing ? "cannot be: " : "could not be: ") + job.unparkable->why);
  if (job.state == JobState::kPending && view.forecast)
    lines.add("starts", "about " + wire::forecast_text(*view.forecast, now));
  lines.add("elements", counts_text(document.elements));
  lines.add("gpu", wire::gpu_text(job));
  for (std::size_t i = 0; i < job.grant.size(); ++i) lines.add("", grant_text(view, i));
  if (view.idle_since) lines.add("idle", "since " + moment(*view.idle_since, now));
  if (job.program) lines.add("program", "process " + std::to_string(job.program->pid));
  add_process(lines, document);
  add_spec(lines, job, now);
  lines.add("log", document.log);
  lines.add("errors", document.err);
  if (!document.environment.empty())
    lines.add("variables",
              std::to_string(document.environment.size()) + "; -o json has their names");
  for (const core::Attempt& attempt : job.attempts)
    lines.add("attempt " + std::to_string(attempt.number), attempt_text(attempt, now));
  lines.add("notify", base::join(document.notify, ", "));
  for (const std::string& note : document.notes) lines.add("note", note);
  if (document.advice)
    lines.add("next time", "--gpu " + document.advice->gpu + ": " + document.advice->why);
  std::string title = "job " + to_string(job.id) + " (" + printable(job.spec->name) + ") of " +
                      printable(job.spec->user) + ": " + wire::state_text(job);
  if (job.attempt > 1) title += ", attempt " + std::to_string(job.attempt);
  return title + "\n" + lines.text();
}

}  // namespace mete::cli
