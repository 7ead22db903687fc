// SPDX-License-Identifier: Apache-2.0
// See notify.h.
#include "core/job/notify.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace mete::core {

namespace {

constexpr std::array<std::string_view, 6> kOns = {"start", "end", "fail", "oom", "park", "idle"};
constexpr const char* kHint = "--notify mail, mail:ADDRESS, webhook:URL, cmd:COMMAND or none";

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// Characters that curl accepts in a URL, and none that its configuration file gives a meaning.
bool is_url(std::string_view text) {
  const bool http = text.starts_with("http://") || text.starts_with("https://");
  const std::size_t host = text.find("//") + 2;
  return http && text.size() > host && text[host] != '/' && text[host] != '?' &&
         text.find_first_of(" \"\\<>^`{|}") == std::string_view::npos &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x80; });
}

bool is_address(std::string_view text) {
  return !text.empty() && text.front() != '-' &&
         text.find_first_of(" ,;:<>()[]\"\\") == std::string_view::npos;
}

Error wrong(std::string_view text, std::string evidence) {
  return Error::invalid("--notify does not take " + base::quote(text))
      .with_evidence(std::move(evidence))
      .with_hint(kHint);
}

}  // namespace

Result<NotifyTarget> parse_notify(std::string_view text) {
  if (text.size() > kMaxNotifyBytes || has_control(text))
    return Error::invalid("a target of --notify is one line of at most " +
                          std::to_string(kMaxNotifyBytes) + " bytes")
        .with_hint(kHint);
  const std::size_t colon = text.find(':');
  const std::string_view way = text.substr(0, colon);
  const std::string to(colon == std::string_view::npos ? "" : text.substr(colon + 1));
  if (way == "mail") {
    if (colon != std::string_view::npos && !is_address(to))
      return wrong(text, "that is no address");
    return NotifyTarget{NotifyWay::kMail, to};
  }
  if (way == "webhook") {
    // The error does not repeat the text: it may be a secret, and errors go to logs.
    if (!is_url(to)) return wrong("webhook:…", "its URL must begin with http:// or https://");
    return NotifyTarget{NotifyWay::kWebhook, to};
  }
  if (way == "cmd") {
    if (to.find_first_not_of(' ') == std::string::npos) return wrong(text, "there is no command");
    return NotifyTarget{NotifyWay::kCommand, to};
  }
  return wrong(way, "there is no such way");
}

std::string to_string(const NotifyTarget& target) {
  switch (target.way) {
    case NotifyWay::kMail:
      return target.to.empty() ? "mail" : "mail:" + target.to;
    case NotifyWay::kWebhook:
      return "webhook:" + target.to;
    case NotifyWay::kCommand:
      break;
  }
  return "cmd:" + target.to;
}

std::string redacted(const NotifyTarget& target) {
  const std::string& to = target.to;
  if (target.way == NotifyWay::kMail) return to_string(target);
  if (target.way == NotifyWay::kCommand) {
    const std::size_t from = std::min(to.find_first_not_of(' '), to.size());
    const std::size_t end = to.find(' ', from);
    return "cmd:" + to.substr(from, end - from) + (end == std::string::npos ? "" : " …");
  }
  const std::size_t host = to.find("//") + 2;
  const std::size_t end = std::min(to.find_first_of("/?#", host), to.size());
  const std::size_t at = to.rfind('@', end);
  const std::size_t from = at == std::string::npos || at < host ? host : at + 1;
  return "webhook:" + to.substr(0, host) + to.substr(from, end - from) +
         (end < to.size() ? "/…" : "");
}

std::string_view to_string(NotifyOn on) { return kOns[static_cast<std::size_t>(on)]; }

std::optional<NotifyOn> parse_notify_on(std::string_view text) {
  const auto found = std::find(kOns.begin(), kOns.end(), text);
  if (found == kOns.end()) return std::nullopt;
  return static_cast<NotifyOn>(found - kOns.begin());
}

Result<std::vector<NotifyOn>> parse_notify_list(std::string_view text) {
  std::vector<NotifyOn> list;
  for (const std::string_view word : base::split(text, ',')) {
    const std::optional<NotifyOn> on = parse_notify_on(word);
    if (!on)
      return Error::invalid("--notify-on does not know " + base::quote(word))
          .with_hint("--notify-on start,end,fail,oom,park,idle, or some of these");
    if (std::find(list.begin(), list.end(), *on) == list.end()) list.push_back(*on);
  }
  std::sort(list.begin(), list.end());
  return list;
}

bool wants(const NotifySpec& spec, NotifyOn on) {
  if (spec.on.empty()) return on == NotifyOn::kEnd || on == NotifyOn::kFail || on == NotifyOn::kOom;
  return std::find(spec.on.begin(), spec.on.end(), on) != spec.on.end();
}

}  // namespace mete::core
