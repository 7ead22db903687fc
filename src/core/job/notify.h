// SPDX-License-Identifier: Apache-2.0
// Where notifications about a job go, and for which events: --notify mail|webhook:URL|cmd:COMMAND,
// --notify-on start,end,... Values and their text; bin/notifier.h delivers them. Targets may hold
// secrets (a token in a URL): show them only as redacted().
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mete::core {

enum class NotifyWay { kMail, kWebhook, kCommand };

struct NotifyTarget {
  NotifyWay way = NotifyWay::kMail;
  std::string to;  // an address ("": the job's user), a URL, a shell command
  bool operator==(const NotifyTarget&) const = default;
};

// "mail", "mail:ADDRESS", "webhook:URL", "cmd:COMMAND".
Result<NotifyTarget> parse_notify(std::string_view text);
std::string to_string(const NotifyTarget& target);
// The host of a webhook, the first word of a command.
std::string redacted(const NotifyTarget& target);

enum class NotifyOn { kStart, kEnd, kFail, kOom, kPark, kIdle };
std::string_view to_string(NotifyOn on);
std::optional<NotifyOn> parse_notify_on(std::string_view text);
// "start,end": each word once, in the order of the list above.
Result<std::vector<NotifyOn>> parse_notify_list(std::string_view text);

inline constexpr std::size_t kMaxNotify = 8;           // targets of one job
inline constexpr std::size_t kMaxNotifyBytes = 2'048;  // per target

struct NotifySpec {
  std::vector<NotifyTarget> to;
  std::vector<NotifyOn> on;  // empty: end, fail, oom
  bool none = false;         // --notify none: not even the targets of the configuration
  bool operator==(const NotifySpec&) const = default;
};
bool wants(const NotifySpec& spec, NotifyOn on);

}  // namespace mete::core
