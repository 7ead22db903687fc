// SPDX-License-Identifier: Apache-2.0
// See slurm_format.h.
#include "cli/slurm_format.h"

#include <array>
#include <cstdio>
#include <ctime>
#include <vector>

#include "base/text.h"

namespace mete::cli {

namespace {

constexpr std::uint64_t kElements = 10'000'000;  // as slurm_job_id() writes an element
constexpr std::size_t kMostWidth = 1'000;
constexpr std::uint64_t kMostHosts = 1'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string two(std::int64_t number) { return (number < 10 ? "0" : "") + std::to_string(number); }

// "1-3,7" behind `name`, one host each, filled with zeros as the first number is.
Result<void> add_range(const std::string& name, std::string_view range,
                       std::vector<std::string>& hosts) {
  const std::size_t dash = range.find('-');
  const std::string_view first = range.substr(0, dash);
  const Result<std::uint64_t> from = base::parse_uint(first);
  const Result<std::uint64_t> to =
      dash == std::string_view::npos ? from : base::parse_uint(range.substr(dash + 1));
  if (!from || !to || *to < *from || *to - *from > kMostHosts)
    return Error::invalid(base::quote(range) + " is no range of numbers").with_hint("node[1-3]");
  for (std::uint64_t number = *from; number <= *to; ++number) {
    std::string digits = std::to_string(number);
    if (digits.size() < first.size()) digits.insert(0, first.size() - digits.size(), '0');
    hosts.push_back(name + digits);
  }
  return {};
}

}  // namespace

Result<std::string> slurm_line(
    std::string_view format, const std::function<std::optional<std::string>(char letter)>& field) {
  std::string line;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      line += format[i];
      continue;
    }
    const std::size_t begin = i++;
    const bool right = i < format.size() && format[i] == '.';
    if (right) ++i;
    std::size_t width = 0;
    while (i < format.size() && is_digit(format[i]) && width < kMostWidth)
      width = width * 10 + static_cast<std::size_t>(format[i++] - '0');
    if (i < format.size() && format[i] == '%') {
      line += '%';
      continue;
    }
    std::optional<std::string> text = i < format.size() ? field(format[i]) : std::nullopt;
    if (!text || width > kMostWidth)
      return Error::invalid("the format has a field that is not known here: " +
                            base::quote(format.substr(begin, i - begin + 1)))
          .with_hint("mete-slurm(7) lists the fields");
    if (width != 0 && text->size() > width) text->resize(width);
    const std::string fill(width > text->size() ? width - text->size() : 0, ' ');
    line += right ? fill + *text : *text + fill;
  }
  return line;
}

std::string slurm_span(std::int64_t seconds) {
  if (seconds < 0) seconds = 0;
  const std::int64_t days = seconds / 86'400, hours = seconds / 3'600 % 24;
  const std::int64_t minutes = seconds / 60 % 60, rest = seconds % 60;
  if (days > 0)
    return std::to_string(days) + "-" + two(hours) + ":" + two(minutes) + ":" + two(rest);
  if (hours > 0) return std::to_string(hours) + ":" + two(minutes) + ":" + two(rest);
  return std::to_string(minutes) + ":" + two(rest);
}

std::string slurm_limit(std::optional<std::uint64_t> seconds) {
  return seconds ? slurm_span(static_cast<std::int64_t>(*seconds)) : "UNLIMITED";
}

std::string slurm_time(std::optional<WallTime> time) {
  if (!time) return "N/A";
  const std::time_t seconds = time->ms / 1000;
  std::tm local{};
  std::array<char, 32> text{};
  if (localtime_r(&seconds, &local) == nullptr ||
      std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &local) == 0)
    return "N/A";
  return text.data();
}

SlurmState slurm_state(const core::Job& job) {
  using core::JobState;
  using core::Outcome;
  switch (job.state) {
    case JobState::kPending:
      return {"PD", "PENDING"};
    case JobState::kStarting:
      return {"CF", "CONFIGURING"};
    case JobState::kRunning:
      return {"R", "RUNNING"};
    case JobState::kParking:
    case JobState::kParked:
    case JobState::kUnparking:
      return {"S", "SUSPENDED"};
    case JobState::kStopping:
      return {"CG", "COMPLETING"};
    case JobState::kEnded:
      break;
  }
  switch (job.outcome.value_or(Outcome::kUnknown)) {
    case Outcome::kOk:
    case Outcome::kUnknown:
      return {"CD", "COMPLETED"};
    case Outcome::kTimeout:
      return {"TO", "TIMEOUT"};
    case Outcome::kCancelled:
    case Outcome::kDependency:
      return {"CA", "CANCELLED"};
    case Outcome::kRamOom:
      return {"OOM", "OUT_OF_MEMORY"};
    case Outcome::kLost:
      return {"NF", "NODE_FAIL"};
    case Outcome::kDeadline:
      return {"DL", "DEADLINE"};
    case Outcome::kFailed:
    case Outcome::kSignal:
    case Outcome::kGpuOom:
    case Outcome::kLaunchFailed:
    case Outcome::kEscaped:
      return {"F", "FAILED"};
  }
  return {"F", "FAILED"};
}

std::string slurm_reason(core::Reason reason) {
  switch (reason) {
    case core::Reason::kResources:
      return "Resources";
    case core::Reason::kPriority:
      return "Priority";
    case core::Reason::kQuota:
      return "QOSMaxGRESPerUser";
    case core::Reason::kReservation:
      return "Reservation";
    case core::Reason::kDependency:
      return "Dependency";
    case core::Reason::kHeld:
      return "JobHeldUser";
    case core::Reason::kBegin:
    case core::Reason::kRetry:
      return "BeginTime";
    case core::Reason::kDrained:
      return "ReqNodeNotAvail";
  }
  return "None";
}

Result<core::JobId> parse_slurm_id(std::string_view text) {
  const std::size_t underscore = text.find('_');
  const Result<std::uint64_t> number = base::parse_uint(text.substr(0, underscore));
  const Error wrong =
      Error::invalid(base::quote(text) + " is no job").with_hint("write 12 or 12_3");
  if (!number || *number == 0) return wrong;
  if (underscore != std::string_view::npos) {
    const Result<std::uint64_t> element = base::parse_uint(text.substr(underscore + 1));
    if (!element || *element >= kElements) return wrong;
    return core::JobId{*number, static_cast<std::uint32_t>(*element)};
  }
  if (*number >= kElements)
    return core::JobId{*number / kElements, static_cast<std::uint32_t>(*number % kElements)};
  return core::JobId{*number};
}

Result<std::string> slurm_hosts(std::string_view list) {
  std::vector<std::string> hosts;
  while (!list.empty()) {
    // A comma inside of brackets does not end a name.
    const std::size_t open = list.find('[');
    std::size_t end = list.find(',');
    std::string_view ranges;
    std::string name(list.substr(0, end));
    if (open != std::string_view::npos && open < end) {
      const std::size_t close = list.find(']', open);
      if (close == std::string_view::npos || (close + 1 < list.size() && list[close + 1] != ','))
        return Error::invalid(base::quote(list) + " is no list of hosts").with_hint("node[1-3],x");
      name = list.substr(0, open);
      ranges = list.substr(open + 1, close - open - 1);
      end = close + 1 < list.size() ? close + 1 : std::string_view::npos;
      for (const std::string_view range : base::split(ranges, ','))
        if (Result<void> r = add_range(name, range, hosts); !r) return std::move(r).error();
    } else if (!name.empty()) {
      hosts.push_back(name);
    }
    if (end == std::string_view::npos) break;
    list.remove_prefix(end + 1);
  }
  return base::join(hosts, "\n");
}

}  // namespace mete::cli
