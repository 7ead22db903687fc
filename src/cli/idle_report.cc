// SPDX-License-Identifier: Apache-2.0
// See idle_report.h. Reader plays the log: it keeps the state of each job (Known), opens a span
// when a job becomes idle and closes it when the job is active, parked or ended. A closed span is
// compared with the policy's times; what would have been freed counts to the end of the span if the
// job had been parked, to the real end of the attempt if it had been stopped.
#include "cli/idle_report.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "base/moment.h"
#include "base/text.h"
#include "cli/json.h"
#include "cli/table.h"

namespace mete::cli {

namespace {

using core::JobId;

constexpr std::uint64_t kMibSecondsPerGibHour = 1024 * 3600;

std::uint64_t mib_seconds(Bytes bytes, WallTime from, WallTime until) {
  if (until <= from) return 0;
  return (bytes.count() >> 20) * static_cast<std::uint64_t>((until.ms - from.ms) / 1000);
}

std::string gib_hours(std::uint64_t mib_s) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f",
                static_cast<double>(mib_s) / static_cast<double>(kMibSecondsPerGibHour));
  return text;
}

// The state of a job at the current place in the log.
struct Known {
  std::string user, name;
  bool parkable = false;
  std::optional<WallTime> refused_at;  // since when something prevents parking
  std::string refused;                 // what prevents it
  Bytes bytes;
  std::optional<WallTime> since;     // start of the open idle span
  WallTime last_known;               // when it was last reported idle
  std::vector<std::size_t> stopped;  // spans in which the policy would have ended the job
};

class Reader {
 public:
  Reader(const IdlePolicy& policy, WallTime from, WallTime now) {
    report_.policy = policy;
    report_.from = from;
    report_.at = now;
  }

  void read(const core::Event& event) {
    at_ = event.at;
    std::visit([this](const auto& what) { on(what); }, event.what);
  }

  IdleReport take() {
    for (auto& [id, job] : jobs_) {
      end_span(id, job, report_.at);
      end_attempt(job, report_.at);
    }
    std::erase_if(report_.spans,
                  [&](const IdleReport::Span& span) { return span.until < report_.from; });
    for (const IdleReport::Span& span : report_.spans) {
      report_.idle_mib_s += mib_seconds(span.bytes, span.since, span.until);
      report_.freed_mib_s += span.freed_mib_s;
    }
    return std::move(report_);
  }

 private:
  void on(const core::JobSubmitted& what) {
    Known& job = jobs_[what.id];
    job.user = what.spec->user;
    job.name = what.spec->name;
    job.parkable = core::is_parkable(*what.spec);
  }
  void on(const core::JobGranted& what) {
    // The elements of an array were submitted under its number.
    if (const auto whole = jobs_.find(JobId{what.id.number});
        what.id.element && whole != jobs_.end() && !jobs_.contains(what.id))
      jobs_[what.id] = whole->second;
    Known& job = jobs_[what.id];
    job.refused_at.reset();
    job.bytes = {};
    for (const core::GrantedCard& card : what.cards)
      job.bytes = job.bytes.checked_add(card.bytes).value_or(job.bytes);
  }
  void on(const core::JobGrown& what) {
    if (what.asked) return;
    Known& job = jobs_[what.id];
    job.bytes = {};
    for (const Bytes bytes : what.bytes)
      job.bytes = job.bytes.checked_add(bytes).value_or(job.bytes);
  }
  void on(const core::JobIdle& what) {
    Known& job = jobs_[what.id];
    if (job.since && *job.since != what.span.since) end_span(what.id, job, job.last_known);
    job.since = what.span.since;
    job.last_known = at_;
  }
  void on(const core::JobActive& what) { end_span(what.id, jobs_[what.id], at_); }
  void on(const core::JobParked& what) {
    end_span(what.id, jobs_[what.id], at_);
    if (what.state == core::JobState::kParked) jobs_[what.id].refused_at.reset();
  }
  void on(const core::JobUnparked& what) {
    Known& job = jobs_[what.id];
    if (what.state != core::JobState::kRunning) return;
    const bool stands = what.standing && !what.why.empty();
    if (!stands) job.refused_at.reset();
    if (stands && !job.refused_at) job.refused_at = at_;
    if (stands) job.refused = what.why;
  }
  void on(const core::JobStopping& what) { end_span(what.id, jobs_[what.id], at_); }
  void on(const core::JobEnded& what) { end(what.id); }
  void on(const core::JobRequeued& what) { end(what.id); }
  template <typename Other>
  void on(const Other& /*nothing about that*/) {}

  void end(JobId id) {
    Known& job = jobs_[id];
    end_span(id, job, at_);
    end_attempt(job, at_);
  }

  // The job would have been gone from its stop to its actual end.
  void end_attempt(Known& job, WallTime until) {
    for (const std::size_t index : job.stopped) {
      IdleReport::Span& span = report_.spans[index];
      span.freed_mib_s = mib_seconds(span.bytes, *span.stopped, until);
    }
    job.stopped.clear();
  }

  static std::optional<WallTime> reached(std::uint64_t seconds, WallTime since, WallTime until) {
    const WallTime when{since.ms + static_cast<std::int64_t>(seconds) * 1000};
    return seconds != 0 && when <= until ? std::optional(when) : std::nullopt;
  }

  void end_span(JobId id, Known& job, WallTime until) {
    if (!job.since) return;
    const WallTime since = *std::exchange(job.since, std::nullopt);
    if (!job.stopped.empty() || until <= since) return;  // the policy would have ended it before
    const IdlePolicy& policy = report_.policy;
    IdleReport::Span span{
        to_string(id), job.user, job.name, since, until, job.bytes, {}, {}, {}, {}, "", 0};
    span.warned = reached(policy.warn_s, since, until);
    span.notified = reached(policy.notify_s, since, until);
    span.parked = reached(policy.park_s, since, until);
    if (span.parked && !job.parkable) span.unparkable = "it was not started to be parkable";
    if (span.parked && job.refused_at && *job.refused_at <= *span.parked)
      span.unparkable = job.refused;
    if (!span.unparkable.empty()) span.parked.reset();
    if (span.parked)
      span.freed_mib_s = mib_seconds(job.bytes, *span.parked, until);
    else
      span.stopped = reached(policy.stop_s, since, until);
    if (span.stopped) job.stopped.push_back(report_.spans.size());
    report_.spans.push_back(std::move(span));
  }

  std::map<JobId, Known> jobs_;
  WallTime at_;
  IdleReport report_;
};

std::string when(const std::optional<WallTime>& time, WallTime now) {
  return time ? moment(*time, now) : "";
}

}  // namespace

IdleReport idle_report(const std::vector<core::Event>& events, const IdlePolicy& policy,
                       WallTime from, WallTime now) {
  Reader reader(policy, from, now);
  for (const core::Event& event : events) reader.read(event);
  return reader.take();
}

std::string idle_text(const IdleReport& report, std::optional<std::size_t> width) {
  const WallTime now = report.at;
  std::string text;
  if (report.spans.empty()) {
    text = "no job was idle for a minute or more";
  } else {
    Table table({{"ID", Align::kRight},
                 {"NAME", Align::kLeft, 20},
                 {"USER", Align::kLeft, 16},
                 {"HELD", Align::kRight},
                 {"IDLE SINCE", Align::kRight},
                 {"FOR", Align::kRight},
                 {"WARNED", Align::kRight},
                 {"TOLD", Align::kRight},
                 {"PARKED", Align::kRight},
                 {"ENDED", Align::kRight},
                 {"GIB-HOURS", Align::kRight}});
    for (const IdleReport::Span& span : report.spans)
      table.add(
          {span.job, span.name, span.user, to_string(span.bytes), moment(span.since, now),
           base::duration_in_words((span.until.ms - span.since.ms) / 1000), when(span.warned, now),
           when(span.notified, now), span.unparkable.empty() ? when(span.parked, now) : "cannot",
           when(span.stopped, now), span.freed_mib_s == 0 ? "" : gib_hours(span.freed_mib_s)});
    text = table.text(width) + "\n" + gib_hours(report.idle_mib_s) +
           " GiB-hours were held idle; this policy would have freed " +
           gib_hours(report.freed_mib_s);
  }
  return text + " (since " + moment(report.from, now) + ")";
}

std::string idle_json(const IdleReport& report) {
  std::vector<std::string> spans;
  for (const IdleReport::Span& span : report.spans) {
    JsonObject object;
    object.text("job", span.job).text("user", span.user).text("name", span.name);
    object.text("since", to_string(span.since)).text("until", to_string(span.until));
    object.number("bytes", span.bytes.count());
    for (const auto& [key, time] :
         {std::pair("warned_at", span.warned), std::pair("notified_at", span.notified),
          std::pair("parked_at", span.parked), std::pair("stopped_at", span.stopped)})
      if (time) object.text(key, to_string(*time));
    if (!span.unparkable.empty()) object.text("unparkable", span.unparkable);
    object.number("freed_mib_s", span.freed_mib_s);
    spans.push_back(object.str());
  }
  JsonObject policy;
  policy.number("warn_s", report.policy.warn_s).number("notify_s", report.policy.notify_s);
  policy.number("park_s", report.policy.park_s).number("stop_s", report.policy.stop_s);
  return JsonObject()
      .text("schema", "mete.idle/1")
      .text("at", to_string(report.at))
      .text("from", to_string(report.from))
      .raw("policy", policy.str())
      .raw("spans", json_array(spans))
      .number("idle_mib_s", report.idle_mib_s)
      .number("freed_mib_s", report.freed_mib_s)
      .str();
}

}  // namespace mete::cli
