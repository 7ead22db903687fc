// SPDX-License-Identifier: Apache-2.0
// See notification.h. take() says in words what an event means to its user, and which kind of
// notification it is. plan_for() turns a notification and a target into a program with arguments
// and input. All text is made safe for where it goes: mail headers, options of curl, the shell's
// input.
#include "wire/notification.h"

#include "base/text.h"
#include "wire/job_text.h"
#include "wire/outline.h"
#include "wire/values.h"

namespace mete::wire {

namespace {

using core::NotifyOn;
using core::Outcome;

NotifyOn kind_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
    case Outcome::kCancelled:
      return NotifyOn::kEnd;
    case Outcome::kGpuOom:
    case Outcome::kRamOom:
      return NotifyOn::kOom;
    default:
      return NotifyOn::kFail;
  }
}

void take_end(Notification& told, Outcome outcome, const std::optional<core::Exit>& exit) {
  told.on = kind_of(outcome);
  told.outcome = outcome;
  if (!exit) return;
  told.exit_code = exit->code;
  told.signal = exit->signal;
}

std::string outcome_words(const Notification& told) {
  std::string text(to_string(*told.outcome));
  if (told.signal) return text + ", signal " + std::to_string(*told.signal);
  return told.exit_code.value_or(0) != 0 ? text + ", code " + std::to_string(*told.exit_code)
                                         : text;
}

// What happened, as the end of a sentence; nullopt: nothing.
std::optional<std::string> take(Notification& told, const core::Happened& what,
                                const core::Job& job) {
  if (std::holds_alternative<core::JobStarted>(what)) {
    told.on = NotifyOn::kStart;
    return "has started";
  }
  if (const auto* ended = std::get_if<core::JobEnded>(&what)) {
    take_end(told, ended->outcome, ended->exit);
    std::string text = "has ended: " + outcome_words(told);
    if (!job.stopped.empty()) return text + "; " + job.stopped;
    return ended->exit && !ended->exit->note.empty() ? text + "; " + ended->exit->note : text;
  }
  if (const auto* again = std::get_if<core::JobRequeued>(&what)) {
    take_end(told, again->outcome, again->exit);
    if (told.on == NotifyOn::kEnd) return std::nullopt;  // a user requeued it
    return "has failed: " + outcome_words(told) + "; it is tried again";
  }
  if (const auto* parked = std::get_if<core::JobParked>(&what);
      parked != nullptr && parked->state == core::JobState::kParked) {
    told.on = NotifyOn::kPark;
    return "is parked: " + kept_text(parked->moved, parked->on_disk);
  }
  if (const auto* idle = std::get_if<core::JobIdle>(&what);
      idle != nullptr && idle->span.step != core::IdleStep::kSeen) {
    told.on = NotifyOn::kIdle;
    return "does nothing on its cards since " + to_string(idle->span.since);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Notification> notification_of(const core::Event& event, const core::Job& job) {
  Notification told;
  const std::optional<std::string> text = take(told, event.what, job);
  if (!text) return std::nullopt;
  told.at = event.at;
  told.job = to_string(job.id);
  told.name = job.spec->name;
  told.user = job.spec->user;
  told.attempt = job.attempt;
  if (std::holds_alternative<core::JobRequeued>(event.what) && told.attempt > 1) --told.attempt;
  told.text = "job " + told.job + " (" + told.name + ") of " + told.user + " " + *text;
  return told;
}

bool is_wanted(const Notification& notification, const core::Happened& what,
               const core::NotifySpec& spec) {
  // By the administrator's policy, not the job's.
  if (const auto* idle = std::get_if<core::JobIdle>(&what);
      idle != nullptr && idle->span.step == core::IdleStep::kNotified)
    return true;
  if (std::holds_alternative<core::JobEnded>(what) && wants(spec, NotifyOn::kEnd)) return true;
  // A job that ran out of memory has failed.
  if (notification.on == NotifyOn::kOom && wants(spec, NotifyOn::kFail)) return true;
  return wants(spec, notification.on);
}

void fields_of(auto& list, Is<Notification> auto& told) {
  list.schema("mete.notification/1");
  list.must("at", told.at);
  list.must("id", told.id);
  list.must("on", told.on);
  list.must("job", told.job);
  list.must("name", told.name);
  list.must("user", told.user);
  list.must("host", told.host);
  list.must("attempt", told.attempt);
  list.opt("outcome", told.outcome);
  list.opt("exit_code", told.exit_code);
  list.opt("signal", told.signal);
  list.must("text", told.text);
}

std::string encode(const Notification& told) { return to_json(told); }
Result<Notification> decode_notification(std::string_view text) {
  return decode<Notification>(text, "the notification");
}

namespace {

// A line of a mail header: nothing in it can end the line, and all bytes are ASCII.
std::string header_text(std::string_view text) {
  std::string line;
  for (const char c : text.substr(0, 200)) line += c >= 0x20 && c < 0x7f ? c : '?';
  return line;
}

std::string mail_of(const Notification& told, const std::string& to) {
  return "To: " + header_text(to) + "\nSubject: mete: " + header_text(told.text) +
         "\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8"
         "\nContent-Transfer-Encoding: 8bit\nAuto-Submitted: auto-generated\nX-Mete-Id: " +
         told.id + "\n\n" + told.text + "\n\nmachine  " + told.host + "\ntime     " +
         to_string(told.at) + "\nmore     mete show " + told.job + "\n";
}

// Text for a file of curl's options.
std::string option_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"\n";
}

}  // namespace

NotifyPlan plan_for(const Notification& told, const core::NotifyTarget& target, std::uint32_t uid,
                    const std::string& sendmail) {
  NotifyPlan plan;
  plan.uid = uid;
  switch (target.way) {
    case core::NotifyWay::kMail: {
      const std::string to = target.to.empty() ? told.user : target.to;
      plan.argv = {sendmail, "-i", "--", to};
      plan.input = mail_of(told, to);
      break;
    }
    case core::NotifyWay::kWebhook:
      plan.argv = {"curl", "-q", "--config", "-"};
      plan.input =
          "silent\nfail\nmax-time = 10\nmax-redirs = 0\nproto = \"=http,https\"\n"
          "output = \"/dev/null\"\nheader = \"Content-Type: application/json\"\n"
          "user-agent = \"mete\"\ndata-binary = " +
          option_text(encode(told)) + "url = " + option_text(target.to);
      break;
    case core::NotifyWay::kCommand:
      plan.argv = {"/bin/sh", "-c", target.to};
      plan.input = encode(told) + "\n";
      plan.variables = {"METE_NOTIFY_ID=" + told.id,
                        "METE_NOTIFY_ON=" + std::string(to_string(told.on)),
                        "METE_NOTIFY_JOB=" + told.job, "METE_NOTIFY_TEXT=" + told.text};
      break;
  }
  return plan;
}

void fields_of(auto& list, Is<NotifyPlan> auto& plan) {
  list.must("uid", plan.uid);
  list.put("argv", exact(plan.argv));
  list.check("argv", !plan.argv.empty(), "a program");
  list.must("input", exact(plan.input));
  list.put("variables", exact(plan.variables));
  list.must("limit_s", plan.limit_s);
}

std::string encode(const NotifyPlan& plan) { return to_json(plan); }
Result<NotifyPlan> decode_notify_plan(std::string_view text) {
  return decode<NotifyPlan>(text, "the notification's plan");
}

void outline_notification(Outlines& all) { outline<Notification>(all["notification"]); }

}  // namespace mete::wire
