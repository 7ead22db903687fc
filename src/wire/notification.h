// SPDX-License-Identifier: Apache-2.0
// A notification of --notify: {"schema":"mete.notification/1",...}, see
// docs/formats/notification.schema.json; and the plan by which mete-notify delivers it. Neither has
// anything of the job's environment, and the document does not say where it goes.
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
  // Equal for every attempt, even by another daemon, so that duplicates can be recognised.
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
  std::string text;  // one line, for users
  bool operator==(const Notification&) const = default;
};
std::string encode(const Notification& notification);
Result<Notification> decode_notification(std::string_view json);

// The notification that follows from an event; nullopt: none. The caller fills in id and host.
std::optional<Notification> notification_of(const core::Event& event, const core::Job& job);
bool is_wanted(const Notification& notification, const core::Happened& what,
               const core::NotifySpec& spec);

// For mete-notify: run `argv` as this user with `input` on its standard input.
struct NotifyPlan {
  std::uint32_t uid = 0;
  std::vector<std::string> argv;
  std::string input;
  std::vector<std::string> variables;  // "NAME=VALUE", besides those of a login
  std::uint32_t limit_s = 15;
  bool operator==(const NotifyPlan&) const = default;
};
// How a notification reaches a target: a shell command with the document as its input, mail by
// `sendmail`, a POST by curl, which reads the URL from its input (arguments of a program are
// public).
NotifyPlan plan_for(const Notification& notification, const core::NotifyTarget& target,
                    std::uint32_t uid, const std::string& sendmail);
std::string encode(const NotifyPlan& plan);
Result<NotifyPlan> decode_notify_plan(std::string_view json);

}  // namespace mete::wire
