// SPDX-License-Identifier: Apache-2.0
// See event_text.h. Detail has one overload per kind of event, which returns the details as text;
// an unknown kind (from a newer daemon) gets a line without details. The columns before them come
// from the document alone.
#include "cli/event_text.h"

#include <variant>
#include <vector>

#include "base/moment.h"
#include "base/text.h"
#include "cli/table.h"
#include "core/request/gpu.h"
#include "wire/job_text.h"

namespace mete::cli {

namespace {

std::string cards_of(const std::vector<core::GrantedCard>& cards) {
  std::vector<std::string> parts;
  for (const core::GrantedCard& card : cards)
    parts.push_back(to_string(card.bytes) + " on card " + std::to_string(card.index));
  return base::join(parts, ", ");
}

std::string quota_words(const core::Quota& quota) {
  std::vector<std::string> parts;
  const auto number = [&parts](const auto& value, const char* what) {
    if (value) parts.push_back(std::to_string(*value) + " " + what);
  };
  number(quota.cards, "cards");
  if (quota.bytes) parts.push_back(to_string(*quota.bytes) + " of GPU memory");
  number(quota.running, "running");
  number(quota.jobs, "jobs");
  if (quota.disk) parts.push_back(to_string(*quota.disk) + " of logs");
  return parts.empty() ? "no limit" : base::join(parts, ", ");
}

// The details beyond the type and the job.
class Detail {
 public:
  explicit Detail(WallTime at) : now(at) {}

  std::string operator()(const core::JobSubmitted& event) const {
    std::string text = event.spec->user + " (" + event.spec->name + ")";
    if (event.spec->request.gpu) text += " asks for " + with_size(*event.spec->request.gpu);
    if (event.spec->array) text += ", array " + to_string(*event.spec->array);
    return text;
  }
  std::string operator()(const core::JobGranted& event) const {
    return event.cards.empty() ? "without a GPU" : cards_of(event.cards);
  }
  std::string operator()(const core::JobStarted& event) const {
    return "process " + std::to_string(event.program.pid);
  }
  std::string operator()(const core::JobStopping& event) const {
    return std::string(to_string(event.why)) + (event.requeue ? ", to run again" : "") +
           (event.note.empty() ? "" : ": " + event.note);
  }
  std::string operator()(const core::JobEnded& event) const {
    std::string text = wire::outcome_text(event.outcome, event.exit);
    return event.exit && !event.exit->note.empty() ? text + ": " + event.exit->note : text;
  }
  std::string operator()(const core::JobRequeued& event) const {
    std::string text = "after " + wire::outcome_text(event.outcome, event.exit);
    if (event.gpu) text += ", asks for " + to_string(*event.gpu);
    if (event.not_before) text += ", not before " + moment_to_the_second(*event.not_before, now);
    return text;
  }
  std::string operator()(const core::JobUngranted& event) const {
    std::string text = "nothing was started";
    if (!event.why.empty()) text += ": " + event.why;
    if (event.not_before) text += ", not before " + moment_to_the_second(*event.not_before, now);
    return text;
  }
  std::string operator()(const core::JobHeld&) const { return ""; }
  std::string operator()(const core::JobReleased&) const { return ""; }
  std::string operator()(const core::JobPriority& event) const {
    return std::to_string(event.priority);
  }
  std::string operator()(const core::JobForecast& event) const {
    return "starts about " + wire::forecast_text(event.forecast, now);
  }
  std::string operator()(const core::JobParked& event) const {
    if (event.state == core::JobState::kParked)
      return wire::kept_text(event.moved, event.on_disk) +
             (event.why.empty() ? "" : "; could not come back: " + event.why);
    if (event.for_job) return "to make room for job " + to_string(*event.for_job);
    if (event.cause == core::ParkCause::kIdle) return "idle";
    return event.by.empty() ? "begins" : "by " + event.by;
  }
  std::string operator()(const core::JobUnparked& event) const {
    if (event.state == core::JobState::kParked) return "may come back";
    if (event.state == core::JobState::kUnparking) return "there is room";
    return event.why.empty() ? "runs" : "cannot be parked: " + event.why;
  }
  std::string operator()(const core::JobGrown& event) const {
    if (event.asked) return "is to give back what it does not use";
    std::vector<std::string> parts;
    for (const Bytes bytes : event.bytes) parts.push_back(to_string(bytes));
    return "may have " + base::join(parts, ", ");
  }
  std::string operator()(const core::EscapeSeen& event) const { return to_string(event.escape); }
  std::string operator()(const core::JobIdle& event) const {
    return "since " + moment_to_the_second(event.span.since, now) +
           (event.span.step == core::IdleStep::kSeen
                ? ""
                : ", " + std::string(to_string(event.span.step)));
  }
  std::string operator()(const core::JobActive&) const { return ""; }
  std::string operator()(const core::CardLost& event) const { return event.uuid; }
  std::string operator()(const core::CardBack& event) const { return event.uuid; }
  std::string operator()(const core::CardDrained& event) const {
    return event.uuid + (event.by.empty() ? "" : " by " + event.by);
  }
  std::string operator()(const core::CardUndrained& event) const { return event.uuid; }
  std::string operator()(const core::QuotaSet& event) const {
    return (event.user.empty() ? "everybody" : event.user) + ": " + quota_words(event.quota);
  }
  std::string operator()(const core::Reserved& event) const {
    const core::Reservation& made = event.reservation;
    return std::to_string(made.id) + " for " + made.user + ", " + moment(made.from, now) + " to " +
           moment(made.until, now) + ": " + cards_of(made.cards);
  }
  std::string operator()(const core::Unreserved& event) const { return std::to_string(event.id); }
  std::string operator()(const core::Booted& event) const { return event.boot_id; }
  std::string operator()(const core::Repaired& event) const {
    return std::to_string(event.lost_events) + " events were lost";
  }
  std::string operator()(const core::SweepStarted& event) const {
    return event.plan->name + ", sampler " + std::string(to_string(event.plan->sampling.method));
  }
  std::string operator()(const core::SweepChanged& event) const {
    return of(event.sweep) + (event.plan ? "extended" : std::string(to_string(event.state)));
  }
  std::string operator()(const core::SweepRemoved& event) const {
    return of(event.sweep) + "forgotten";
  }
  std::string operator()(const core::SweepTrial& event) const {
    std::string text = trial(event) + "is job " + to_string(event.what.job);
    if (event.what.granted) text += " with " + to_string(*event.what.granted);
    return text;
  }
  std::string operator()(const core::SweepReported& event) const {
    std::string text = trial(event) + "reports";
    if (event.what.points.empty()) return text;
    const core::sweep::TrialPoint& last = event.what.points.back();
    if (last.step) text += " step " + std::to_string(*last.step);
    return text + values(last.metrics);
  }
  std::string operator()(const core::SweepResult& event) const {
    return trial(event) + std::string(to_string(event.what.state)) + values(event.what.metrics) +
           (event.what.why.empty() ? "" : ": " + event.what.why);
  }
  std::string operator()(const core::SweepBest& event) const {
    return of(event.sweep) + "trial " + std::to_string(event.what.best.n) + ", " +
           core::sweep::of_real(event.what.best.value).text;
  }
  std::string operator()(const core::SweepSkipped& event) const {
    return of(event.sweep) + "no new point before draw " + std::to_string(event.what.next_draw);
  }
  std::string operator()(const core::SweepReduced& event) const {
    return of(event.sweep) + (event.what.dropped ? "dropped " + event.what.dropped->value.text
                                                 : std::string("nothing is dropped"));
  }
  std::string operator()(const core::SweepEnding& event) const {
    return trial(event) + "is to end: " + std::string(to_string(event.what.ending)) +
           (event.what.why.empty() ? "" : ", " + event.what.why);
  }
  std::string operator()(const core::SweepEnded& event) const {
    return of(event.sweep) + event.what.why;
  }

 private:
  static std::string of(std::uint64_t sweep) { return "sweep " + std::to_string(sweep) + ": "; }
  static std::string trial(const auto& event) {
    return of(event.sweep) + "trial " + std::to_string(event.what.n) + " ";
  }
  static std::string values(const std::vector<core::sweep::Metric>& metrics) {
    std::string text;
    for (const core::sweep::Metric& metric : metrics)
      text += ", " + metric.name + " " + core::sweep::of_real(metric.value).text;
    return text;
  }

  WallTime now;
};

void pad(std::string& text, const std::string& word, std::size_t width) {
  text += word;
  text.append(word.size() < width ? width - word.size() : 0, ' ').append("  ");
}

}  // namespace

std::string event_text(const wire::EventDocument& event, WallTime now) {
  const std::string seq = std::to_string(event.seq);
  std::string text(seq.size() < 6 ? 6 - seq.size() : 0, ' ');
  text += seq + "  ";
  pad(text, moment_to_the_second(event.at, now), 8);
  pad(text, event.type, 13);
  pad(text, event.job, 6);
  // A kind of event that only a newer daemon knows gets a line, too.
  if (const Result<core::Happened> what = wire::decode_event(event))
    text += printable(std::visit(Detail(now), *what));
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace mete::cli
