// SPDX-License-Identifier: Apache-2.0
// What somebody is told who asked for it with --notify: {"schema":"mete.notification/1",...}, see
// docs/formats/notification.schema.json; and what mete-notify is given to deliver one. Neither has
// anything of the job's environment, and the document nothing of where it goes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "core/job/event.h"

namespace mete::wire {

struct Notification {
  // The same for every try, also of another daemon: who gets it twice can tell.
  std::string id;  // "81-0": number of the event, number of the target
  WallTime at;
  core::NotifyOn on = core::NotifyOn::kEnd;
  std::string job;
  std::string name;
  std::string user;
  std::string host;
  std::uint32_t attempt = 1;
  std::optional<core::Outcome> outcome;
  std::optional<int> exit_code;
  std::optional<int> signal;
  std::string text;  // one line, for people
  bool operator==(const Notification&) const = default;
};
std::string encode(const Notification& notification);
Result<Notification> decode_notification(std::string_view json);

// What an event is to whoever asked for notifications of its job; nullopt: nothing. Id and host are
// left for others to fill in.
std::optional<Notification> notification_of(const core::Event& event, const core::Job& job);
// Whether a job with this spec wants to hear of it.
bool is_wanted(const Notification& notification, const core::Happened& what,
               const core::NotifySpec& spec);

// For mete-notify: run `argv` as that user with `input` as its standard input.
struct NotifyPlan {
  std::uint32_t uid = 0;
  std::vector<std::string> argv;
  std::string input;
  std::vector<std::string> variables;  // "NAME=VALUE", besides those of a login
  std::uint32_t limit_s = 15;
  bool operator==(const NotifyPlan&) const = default;
};
// How a notification reaches a target: a shell line with the document as its input, mail by
// `sendmail`, a POST by curl, which reads the URL from its input (anybody sees the arguments of a
// program).
NotifyPlan plan_for(const Notification& notification, const core::NotifyTarget& target,
                    std::uint32_t uid, const std::string& sendmail);
std::string encode(const NotifyPlan& plan);
Result<NotifyPlan> decode_notify_plan(std::string_view json);

}  // namespace mete::wire
