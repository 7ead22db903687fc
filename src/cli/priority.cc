// SPDX-License-Identifier: Apache-2.0
// `mete priority ID... N`: which jobs go first. Higher goes before lower, whoever came first.
#include <array>

#include "base/text.h"
#include "cli/job_change.h"
#include "cli/verbs.h"
#include "wire/queue.h"

namespace mete::cli {

namespace {

constexpr std::array kPriorityOptions{kOutputOption};

// "-5", "+5", "5".
Result<std::int32_t> parse_priority(std::string_view text) {
  const bool negative = text.starts_with('-');
  const Result<std::uint64_t> number =
      base::parse_uint(negative || text.starts_with('+') ? text.substr(1) : text);
  const std::string most = std::to_string(core::kMaxPriority);
  if (!number || *number > static_cast<std::uint64_t>(core::kMaxPriority))
    return Error::invalid(base::quote(text) + " is no priority")
        .with_evidence("it is a number from -" + most + " to " + most + ", and comes last")
        .with_hint("mete priority 12 -5");
  const auto value = static_cast<std::int32_t>(*number);
  return negative ? -value : value;
}

int run_priority(const Parsed& parsed, const Output& output) {
  if (parsed.rest.size() < 2)
    return output.fail(
        Error::invalid("a job and its new priority are needed").with_hint("mete priority 12 -5"));
  std::vector<std::string> words = parsed.rest;
  const Result<std::int32_t> priority = parse_priority(words.back());
  if (!priority) return output.fail(priority.error());
  words.pop_back();
  return change_jobs({"priority", "POST", "/priority", wire::encode_priority(*priority),
                      "at priority " + std::to_string(*priority)},
                     words, output);
}

}  // namespace

const Verb kPriorityVerb{
    "priority",
    "change the priority of jobs",
    "mete priority ID... N [-o json]",
    "mete priority 12 -5         # after all jobs with a higher priority\n"
    "mete priority 12 13 0",
    "N is -1000 to 1000. Jobs with a higher priority start first; within one priority, users take "
    "turns. Only administrators may set a priority above 0.",
    kPriorityOptions,
    Rest::kWords,
    run_priority,
};

}  // namespace mete::cli
