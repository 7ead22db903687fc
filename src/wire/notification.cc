// SPDX-License-Identifier: Apache-2.0
// See notification.h.
#include "wire/notification.h"

#include "base/text.h"
#include "wire/job_text.h"
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

// What happened, as the end of a sentence; nullopt: nothing to tell of.
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
    if (told.on == NotifyOn::kEnd) return std::nullopt;  // somebody wants it again
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
  // The administrator's policy, not the job's.
  if (const auto* idle = std::get_if<core::JobIdle>(&what);
      idle != nullptr && idle->span.step == core::IdleStep::kNotified)
    return true;
  if (std::holds_alternative<core::JobEnded>(what) && wants(spec, NotifyOn::kEnd)) return true;
  // A job that ran out of memory has failed.
  if (notification.on == NotifyOn::kOom && wants(spec, NotifyOn::kFail)) return true;
  return wants(spec, notification.on);
}

std::string encode(const Notification& told) {
  JsonText out;
  out.open();
  out.put("schema", "mete.notification/1");
  out.put("at", told.at);
  out.put("id", told.id);
  out.put("on", to_string(told.on));
  out.put("job", told.job);
  out.put("name", told.name);
  out.put("user", told.user);
  out.put("host", told.host);
  out.put("attempt", told.attempt);
  if (told.outcome) out.put("outcome", to_string(*told.outcome));
  out.put_if("exit_code", told.exit_code);
  out.put_if("signal", told.signal);
  out.put("text", told.text);
  out.close();
  return out.take();
}

Result<Notification> decode_notification(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the notification");
  Notification told;
  told.at = fields.time("at");
  told.id = fields.text("id");
  const std::optional<NotifyOn> on = core::parse_notify_on(fields.text("on"));
  if (!on) fields.fail("on", "start, end, fail, oom, park or idle");
  told.on = on.value_or(told.on);
  told.job = fields.text("job");
  told.name = fields.text("name");
  told.user = fields.text("user");
  told.host = fields.text("host");
  told.attempt = fields.number<std::uint32_t>("attempt");
  if (fields.has("outcome")) told.outcome = outcome_from(fields, "outcome");
  told.exit_code = fields.number_if<int>("exit_code");
  told.signal = fields.number_if<int>("signal");
  told.text = fields.text("text");
  if (!fields.ok()) return fields.error();
  return told;
}

namespace {

// One line of a header: nothing in it can end it, and no byte needs a coding.
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

// As a file of options for curl has it.
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

std::string encode(const NotifyPlan& plan) {
  JsonText out;
  out.open();
  out.put("uid", plan.uid);
  out.key("argv").open_list();
  for (const std::string& word : plan.argv) out.exact(word);
  out.close_list();
  out.key("input").exact(plan.input);
  out.key("variables").open_list();
  for (const std::string& line : plan.variables) out.exact(line);
  out.close_list();
  out.put("limit_s", plan.limit_s);
  out.close();
  return out.take();
}

Result<NotifyPlan> decode_notify_plan(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the notification's plan");
  NotifyPlan plan;
  plan.uid = fields.number<std::uint32_t>("uid");
  plan.argv = fields.exacts("argv");
  plan.input = fields.exact("input");
  plan.variables = fields.exacts("variables");
  plan.limit_s = fields.number<std::uint32_t>("limit_s");
  if (plan.argv.empty()) fields.fail("argv", "a program");
  if (!fields.ok()) return fields.error();
  return plan;
}

}  // namespace mete::wire
