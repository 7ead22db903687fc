// SPDX-License-Identifier: Apache-2.0
// See job_change.h. A Change says what a verb asks of the daemon and what it prints; one function
// sends one request for each job, and collects what has changed. A job that cannot be changed does
// not keep the others from it.
#include "cli/job_change.h"

#include <array>

#include "base/text.h"
#include "cli/named_jobs.h"
#include "cli/verbs.h"
#include "seam/clock.h"
#include "wire/queue.h"
#include "wire/show.h"

namespace mete::cli {

namespace {

struct Change {
  std::string_view verb;
  std::string_view method;
  std::string_view path;  // "/hold"; "": the job itself
  std::string_view done;  // "cancelled": what a job is then
  // What to print instead of an error, if it is no error for this verb; "": it is one.
  std::string (*forgiven)(runner::DaemonClient& client, core::JobId id) = nullptr;
};

// Cancelling twice is no mistake: a script that does so got what it wanted.
std::string cancelled_before(runner::DaemonClient& client, core::JobId id) {
  const Result<std::string> body = client.call("GET", job_target(id, "/show"));
  const Result<wire::ShowDocument> shown = body ? wire::decode_show(*body) : body.error();
  if (!shown || shown->view.job.outcome != core::Outcome::kCancelled) return "";
  return "job " + to_string(id) + " was cancelled before";
}

constexpr Change kCancel{"cancel", "DELETE", "", "cancelled", cancelled_before};
constexpr Change kHold{"hold", "POST", "/hold", "held"};
constexpr Change kRelease{"release", "POST", "/release", "released"};
constexpr Change kRequeue{"requeue", "POST", "/requeue", "in the queue again"};
constexpr std::array kOptions{kOutputOption};

// `body` is JSON; "": none.
int change_jobs(const Change& change, const std::string& body,
                const std::vector<std::string>& words, const Output& output) {
  Result<runner::DaemonClient> client = open_for_words(change.verb, words);
  if (!client) return output.fail(client.error());
  Failures failures(output);
  wire::ChangedDocument all{seam::system_clock().wall(), {}};
  for (const core::JobId id : named_jobs(words, client->http().path(), failures)) {
    const Result<std::string> reply =
        client->call(change.method, job_target(id, change.path), body);
    const Result<wire::ChangedDocument> answer =
        reply ? wire::decode_changed(*reply) : reply.error();
    if (!answer) {
      const std::string said = change.forgiven && answer.error().code == ErrorCode::kInvalid
                                   ? change.forgiven(*client, id)
                                   : "";
      if (said.empty())
        failures.add(answer.error());
      else
        output.say(said);
      if (client->silent()) break;  // the others would wait as long, each
      continue;
    }
    all.changed.insert(all.changed.end(), answer->changed.begin(), answer->changed.end());
    if (!output.json()) output.say(changed_text(id, answer->changed, change.done));
  }
  if (output.json()) output.data(wire::encode(all));
  return failures.exit_code();
}

template <const Change& change>
int run_change(const Parsed& parsed, const Output& output) {
  return change_jobs(change, "", parsed.rest, output);
}

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
  const std::string done = "at priority " + std::to_string(*priority);
  return change_jobs({"priority", "POST", "/priority", done}, wire::encode_priority(*priority),
                     words, output);
}

}  // namespace

std::string changed_text(core::JobId asked, const std::vector<core::JobId>& changed,
                         std::string_view done) {
  const std::string name = to_string(asked);
  if (changed.empty()) return "job " + name + ": nothing to change";
  if (changed.size() == 1 && changed.front() == asked)
    return "job " + name + " is " + std::string(done);
  return std::to_string(changed.size()) + (changed.size() == 1 ? " job of " : " jobs of ") + name +
         (changed.size() == 1 ? " is " : " are ") + std::string(done);
}

const Verb kCancelVerb{
    "cancel",
    "cancel waiting or running jobs",
    "mete cancel ID... [-o json]",
    "mete cancel 12\n"
    "mete cancel 12_3 13         # one job of an array, and another job\n"
    "mete cancel @               # your last job",
    "A waiting job leaves the queue. In a running job every process gets SIGTERM, and SIGKILL "
    "after a grace period. mete cancel does not wait for the end of the job; mete wait does. The "
    "number of an array stands for all its jobs. Cancelling a cancelled job again succeeds; "
    "cancelling a job that ended in another way fails with exit code 64. mete kill and mete stop "
    "are aliases.",
    kOptions,
    Rest::kWords,
    run_change<kCancel>,
    {},
    {"kill", "stop"},
};

const Verb kHoldVerb{
    "hold",
    "keep waiting jobs from starting",
    "mete hold ID... [-o json]",
    "mete hold 12\n"
    "mete release 12             # allow it to start",
    "A held job keeps its number, and its position in the queue once it is released. A running job "
    "cannot be held; mete requeue puts it back into the queue.",
    kOptions,
    Rest::kWords,
    run_change<kHold>,
};

const Verb kReleaseVerb{
    "release",
    "let held jobs start",
    "mete release ID... [-o json]",
    "mete release 12",
    "Releases jobs that were held by mete hold or submitted with --hold.",
    kOptions,
    Rest::kWords,
    run_change<kRelease>,
};

const Verb kRequeueVerb{
    "requeue",
    "put jobs back into the queue, to run again",
    "mete requeue ID... [-o json]",
    "mete requeue 12\n"
    "mete requeue 12_3 12_7      # two jobs of an array",
    "An ended job runs again, as it was submitted. A running job is ended first (SIGTERM, then "
    "SIGKILL after a grace period) and waits again. The job keeps its number; its attempt counter "
    "increases. Works for jobs of mete submit only.",
    kOptions,
    Rest::kWords,
    run_change<kRequeue>,
};

const Verb kPriorityVerb{
    "priority",
    "change the priority of jobs",
    "mete priority ID... N [-o json]",
    "mete priority 12 -5         # after all jobs with a higher priority\n"
    "mete priority 12 13 0",
    "N is -1000 to 1000. Jobs with a higher priority start first; within one priority, users take "
    "turns. Only administrators may set a priority above 0.",
    kOptions,
    Rest::kWords,
    run_priority,
};

}  // namespace mete::cli
