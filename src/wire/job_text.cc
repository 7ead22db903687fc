// SPDX-License-Identifier: Apache-2.0
// See job_text.h.
#include "wire/job_text.h"

#include <signal.h>

#include <algorithm>
#include <cstdlib>

#include "base/exit_code.h"
#include "base/moment.h"
#include "base/text.h"
#include "core/request/gpu.h"

namespace mete::wire {

using core::Job;
using core::JobState;
using core::Outcome;

std::string outcome_text(Outcome outcome, const std::optional<core::Exit>& exit) {
  std::string text(to_string(outcome));
  if (exit && exit->signal) return text + " " + std::to_string(*exit->signal);
  if (exit && exit->code.value_or(0) != 0) return text + " " + std::to_string(*exit->code);
  return text;
}

std::string state_text(const Job& job) {
  std::string text(to_string(job.state));
  if (job.state != JobState::kEnded || !job.outcome) return text;
  return text + " " + outcome_text(*job.outcome, job.exit);
}

std::string request_text(const Job& job) {
  const std::optional<core::GpuRequest>& gpu = job.gpu ? job.gpu : job.spec->request.gpu;
  return gpu ? as_written(*gpu) : "";
}

std::string gpu_text(const Job& job) {
  const std::optional<core::GpuRequest>& gpu = job.gpu ? job.gpu : job.spec->request.gpu;
  if (job.grant.empty()) return gpu ? with_size(*gpu) : "";
  const std::string text = request_text(job);
  std::vector<std::string> each;
  for (const core::GrantedCard& card : job.grant) each.push_back(to_string(card.bytes));
  const bool same = std::all_of(each.begin(), each.end(),
                                [&](const std::string& bytes) { return bytes == each.front(); });
  std::string bytes = base::join(each, " + ");
  if (same && each.size() > 1) bytes = std::to_string(each.size()) + "x " + each.front();
  return text.empty() ? bytes : text + " → " + bytes;
}

std::string cards_text(const Job& job) {
  std::vector<std::string> cards;
  for (const core::GrantedCard& card : job.grant) cards.push_back(std::to_string(card.index));
  return base::join(cards, ",");
}

std::string used_text(const wire::JobView& view) {
  if (view.job.state == JobState::kEnded || view.used.empty()) return "";
  Bytes sum;
  for (const std::optional<Bytes>& used : view.used) {
    const std::optional<Bytes> more = used ? sum.checked_add(*used) : std::nullopt;
    if (!more) return "";
    sum = *more;
  }
  return to_string(sum);
}

std::string waits_for(const core::Wait& wait, WallTime now, Cards cards) {
  if (wait.release) return "mete release " + to_string(*wait.release) + " lets it start";
  return wait_text(wait, now, cards);
}

namespace {

// "0.6 s"
std::string wake_time(const Job& job) {
  const std::uint64_t tenths = (core::move_ms(job.park->moved) + 99) / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace

std::string kept_text(Bytes moved, Bytes on_disk) {
  const Bytes memory = moved.minus(on_disk);
  if (on_disk.is_zero()) return to_string(memory) + " in host memory";
  if (memory.is_zero()) return to_string(on_disk) + " on disk";
  return to_string(memory) + " in host memory, " + to_string(on_disk) + " on disk";
}

std::string park_text(const Job& job) {
  if (!job.park || job.park->held.empty()) return "";
  std::vector<std::string> parts{kept_text(job.park->moved, job.park->on_disk)};
  // Lists have one figure for all cards.
  const bool of_each = job.park->held.size() == job.grant.size();
  for (std::size_t i = 0; i < job.park->held.size(); ++i)
    if (!job.park->held[i].is_zero())
      parts.push_back(to_string(job.park->held[i]) + " still on " +
                      (of_each ? "card " + std::to_string(job.grant[i].index) : "its cards"));
  if (job.park->for_job) parts.push_back("for job " + to_string(*job.park->for_job));
  if (job.park->lost)
    parts.emplace_back("and cannot come back: what was kept for it is gone");
  else if (job.park->cause == core::ParkCause::kIdle)
    parts.push_back("idle, back within " + wake_time(job) + " of its first call");
  return base::join(parts, ", ");
}

std::string reason_text(const wire::JobView& view, WallTime now) {
  if (view.job.state == JobState::kParked) {
    const std::string where = park_text(view.job);
    return view.wait ? where + "; waits for " + waits_for(*view.wait, now) : where;
  }
  if (view.job.state != JobState::kPending) return remark_text(view.remark, now);
  if (!view.wait) return "";
  return std::string(to_string(view.wait->reason)) + ": " + waits_for(*view.wait, now);
}

namespace {

// For a cell of a table: "14:05" within a day, "Nov 16" or "2027-01-02" later.
std::string brief_moment(WallTime time, WallTime now) {
  constexpr std::int64_t kDayMs = 24LL * 3600 * 1000;
  constexpr std::size_t kClock = 5;
  const std::string text = moment(time, now);
  if (text.size() <= kClock) return text;
  return std::abs(time.ms - now.ms) < kDayMs ? text.substr(text.size() - kClock)
                                             : text.substr(0, text.size() - kClock - 1);
}

// Of a wait without a limit, a time or a job in it: by its reason.
std::string brief_turn(const core::Wait& wait, const std::optional<std::uint64_t>& place) {
  if (wait.reason == core::Reason::kDrained) return "card drained";
  if (wait.reason == core::Reason::kReservation) return "reserved";
  if (place) return *place <= 1 ? "next" : std::to_string(*place - 1) + " ahead";
  if (wait.behind) return "after " + to_string(wait.behind->job);
  return wait.reason == core::Reason::kResources ? "no room" : std::string(to_string(wait.reason));
}

std::string brief_wait(const core::Wait& wait, const std::optional<std::uint64_t>& place,
                       WallTime now) {
  if (wait.release || wait.reason == core::Reason::kHeld) return "held";
  if (!wait.after.empty()) {
    const std::size_t more = wait.after.size() - 1 + wait.more_after;
    return "after " + to_string(wait.after.front().id) +
           (more == 0 ? "" : " and " + std::to_string(more) + " more");
  }
  if (wait.until)
    return (wait.reason == core::Reason::kBegin ? "begins " : "retries ") +
           brief_moment(*wait.until, now);
  if (!wait.parking.empty()) return "parks job " + to_string(wait.parking.front());
  if (wait.quota) return "quota";
  if (wait.array) return std::to_string(wait.array->most) + " at a time";
  if (wait.cpus) return "CPUs in use";
  return brief_turn(wait, place);
}

std::string brief_park(const wire::JobView& view) {
  const core::Park& park = *view.job.park;
  if (park.lost) return "cannot come back";
  std::string text = park.for_job                           ? "for job " + to_string(*park.for_job)
                     : park.cause == core::ParkCause::kIdle ? "idle"
                                                            : "until unparked";
  if (!view.wait) return text;
  return park.for_job ? text + ", comes back" : "comes back";
}

}  // namespace

std::string brief_reason(const wire::JobView& view, const std::optional<std::uint64_t>& place,
                         WallTime now) {
  if (view.job.state == JobState::kParked) return view.job.park ? brief_park(view) : "";
  if (view.job.state != JobState::kPending) {
    if (!view.remark.said.empty() || !view.remark.idle) return view.remark.said;
    if (!view.remark.idle->until) return "idle";
    return (view.remark.idle->parks ? "idle, parked " : "idle, ended ") +
           brief_moment(*view.remark.idle->until, now);
  }
  const std::string wait = view.wait ? brief_wait(*view.wait, place, now) : "";
  if (!view.forecast) return wait;
  const std::string start = "~" + brief_moment(view.forecast->at, now);
  return wait.empty() ? start : start + ", " + wait;
}

std::string queue_text(const wire::JobView& view, WallTime now) {
  std::vector<std::string> parts;
  if (view.place && *view.place > 1)
    parts.push_back(std::to_string(*view.place - 1) +
                    (*view.place == 2 ? " job ahead" : " jobs ahead"));
  else if (view.place)
    parts.emplace_back("next in the queue");
  if (view.forecast) parts.push_back("starts about " + moment(view.forecast->at, now));
  return base::join(parts, ", ");
}

std::string forecast_text(const core::Forecast& forecast, WallTime now) {
  return moment(forecast.at, now) + ", " + std::to_string(core::kForecastPct) + "% sure by " +
         moment(forecast.by, now);
}

std::string sentence(const wire::JobView& view, WallTime now) {
  const Job& job = view.job;
  const std::string name = "job " + to_string(job.id);
  if (job.state == JobState::kPending) {
    const std::string reason = reason_text(view, now);
    return name + " waits" + (reason.empty() ? "" : ": " + reason);
  }
  if (job.state == JobState::kEnded) {
    std::string text = name + " has ended";
    if (job.outcome) text += ": " + outcome_text(*job.outcome, job.exit);
    return job.ended ? text + " at " + moment(*job.ended, now) : text;
  }
  if (job.state == JobState::kRunning && job.started)
    return name + " runs since " + moment(*job.started, now);
  return name + " is " + std::string(to_string(job.state));
}

int exit_code_of_job(const Job& job) {
  const Outcome outcome = job.outcome.value_or(Outcome::kLost);
  if (outcome == Outcome::kOk) return base::kExitOk;
  if (outcome == Outcome::kTimeout || outcome == Outcome::kDeadline) return base::kExitTimeout;
  if (job.exit && job.exit->signal) return 128 + *job.exit->signal;
  if (job.exit && job.exit->code.value_or(0) != 0) return *job.exit->code;
  return outcome == Outcome::kCancelled ? 128 + SIGTERM : base::kExitFailed;
}

}  // namespace mete::wire
