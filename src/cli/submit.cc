// SPDX-License-Identifier: Apache-2.0
// `mete submit`: sends a job, or all jobs of a file, to the daemon, and prints their ids once they
// are on disk. Either all jobs of a file are accepted or none: they are held until the last one is
// accepted, and a signal before the ids are printed cancels them again.
#include "cli/submit.h"

#include <sys/random.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/text.h"
#include "cli/dry_run.h"
#include "cli/job_ref.h"
#include "cli/submit_print.h"
#include "cli/verbs.h"
#include "cli/wait_signals.h"
#include "config/config.h"
#include "runner/daemon_client.h"
#include "runner/lasting_client.h"
#include "seam/clock.h"
#include "wire/submit.h"

namespace mete::cli {

namespace {

// How long the end by a signal waits for the answer that is under way.
constexpr net::Milliseconds kLastAnswer{5'000};

std::string job_path(core::JobId id) { return "/v1/jobs/" + to_string(id); }

Error too_large(const wire::SubmitRequest& request) {
  std::size_t environment = 0;
  for (const std::string& line : request.environment) environment += line.size() + 1;
  std::size_t command = 0;
  for (const std::string& word : request.spec.command) command += word.size() + 1;
  return Error::invalid("this job is too large to send")
      .with_evidence("its command has " + std::to_string(command) + " bytes, its script " +
                     std::to_string(request.script.size()) + ", its environment " +
                     std::to_string(environment))
      .with_hint("pass a list of files as a file; env -i leaves an environment behind");
}

class Submitter {
 public:
  Submitter(runner::DaemonClient client, const Output& output, SubmittedText text, bool quiet)
      : client_(std::move(client), output.talk()),
        quiet_(quiet),
        output_(output),
        text_(std::move(text)) {}

  int submit(SubmitPlan plan) {
    const bool several = plan.jobs.size() > 1;
    const Result<std::string> version = client_.call(
        "GET", "/v1/version", {}, {runner::DaemonClient::kPatience.timeout, signals_.descriptor()});
    if (was_ended()) return take_back_all(128 + signal_);
    if (!version && client_.silent()) return output_.fail(version.error());
    // An older daemon without keys would make a second job of a repeated request.
    keys_ = version && wire::knows_keys(*version);
    for (SubmitPlan::Job& job : plan.jobs) {
      const bool held = job.job.request.spec.held;
      job.job.request.spec.held = held || several;
      Result<wire::SubmitReply> reply = send(job);
      if (reply) sent_.push_back({*reply, several && !held});
      if (was_ended()) return take_back_all(128 + signal_);
      if (!reply) return fail_all(reply.error());
      if (!job.name.empty()) by_name_[job.name] = reply->id;
    }
    int code = kExitOk;
    for (const Sent& sent : sent_) {
      if (sent.to_release && !release(sent.reply.id)) code = kExitFailed;
      if (was_ended()) return take_back_all(128 + signal_);
    }
    signals_.restore();
    for (const Sent& sent : sent_) print(sent.reply);
    if (!output_.failed()) return code;
    std::vector<std::string> ids;
    for (const Sent& sent : sent_) ids.push_back(to_string(sent.reply.id));
    output_.say("submitted, but not printed: " + base::join(ids, " "));
    return kExitFailed;
  }

 private:
  struct Sent {
    wire::SubmitReply reply;
    bool to_release = false;
  };

  Result<wire::SubmitReply> send(SubmitPlan::Job& job) {
    for (const AfterWord& after : job.job.after)
      if (Result<void> r = add_after(after, job.job.request.spec); !r) return std::move(r).error();
    // With a key, a repeated request makes no second job.
    if (keys_) job.job.request.spec.key = random_key();
    const std::string body = wire::encode(job.job.request);
    if (body.size() > kMaxRequest) return too_large(job.job.request);
    const net::Wait wait{runner::DaemonClient::kPatience.timeout, signals_.descriptor()};
    Result<std::string> answer = keys_ ? client_.call("POST", "/v1/jobs", body, wait)
                                       : client_.call_once("POST", "/v1/jobs", body, wait);
    // The daemon may be accepting a job right now: its id is needed to cancel it.
    if (!answer && client_.interrupted()) answer = client_.receive({kLastAnswer, -1});
    if (!answer)
      client_.abandon();  // a late reply would be taken for the answer to the next request
    unknown_ = client_.unknown();
    if (!answer && unknown_ && !client_.silent())
      return Error::io("the daemon went away; whether it has taken the job is not known")
          .with_evidence(answer.error().message)
          .with_hint("mete ps shows it if it has");
    if (!answer) return answer.error();
    Result<wire::SubmitReply> reply = wire::decode_submit_reply(*answer);
    if (reply) return reply;
    return Error::corrupt("the daemon's answer is not understood")
        .with_evidence(reply.error().message)
        .with_hint("mete daemon stop; the next command starts the daemon that belongs to it");
  }

  Result<void> add_after(const AfterWord& after, core::JobSpec& spec) {
    if (!after.name.empty()) {
      spec.after.push_back({by_name_.at(after.name), after.when});
      return {};
    }
    const Result<std::vector<core::JobId>> ids = resolve(after.job, client_.socket());
    if (!ids) return ids.error();
    for (const core::JobId& id : *ids) spec.after.push_back({id, after.when});
    return {};
  }

  // Whether a signal that ends this program has arrived.
  bool was_ended() {
    if (signal_ == 0) signal_ = signals_.take();
    return signal_ != 0;
  }

  int take_back_all(int exit_code) {
    signals_.restore();  // a second signal ends this program at once
    std::size_t taken = 0;
    for (const Sent& sent : sent_) {
      // A daemon that does not answer is not asked about each job.
      if (!client_.silent() && client_.call("DELETE", job_path(sent.reply.id)))
        ++taken;
      else
        output_.say("job " + to_string(sent.reply.id) + " could not be taken back: mete cancel " +
                    to_string(sent.reply.id));
    }
    if (signal_ != 0)
      output_.say("interrupted; " + std::to_string(taken) +
                  (taken == 1 ? " job was" : " jobs were") + " taken back" +
                  (unknown_ ? ", of one more it is not known: mete ps" : ""));
    return exit_code;
  }

  int fail_all(const Error& error) {
    (void)take_back_all(kExitOk);
    // The daemon names the wrong field, but does not know that it came from a file.
    if (error.code == ErrorCode::kInvalid &&
        !config::load_config(config::ConfigPlaces::from_environment(true)))
      return output_.fail(error, kExitBadFile);
    return output_.fail(error);
  }

  bool release(core::JobId id) {
    const Result<std::string> answer = client_.call("POST", job_path(id) + "/release");
    if (!answer)
      output_.fail(Error(answer.error())
                       .within("job " + to_string(id) + " is submitted, and still held")
                       .with_hint("mete release " + to_string(id)));
    return answer.ok();
  }

  void print(const wire::SubmitReply& reply) {
    // The job exists: failing to remember it for "@" is no error.
    (void)remember_job(reply.id.number, client_.socket());
    output_.data(output_.json() ? wire::encode(reply, seam::system_clock().wall()) : text_(reply));
    if (!output_.json() && !quiet_ && !reply.note.empty()) output_.say(reply.note);
  }

  runner::LastingClient client_;
  bool quiet_;
  const Output& output_;
  SubmittedText text_;
  bool keys_ = false;  // the daemon knows jobs by their keys
  WaitSignals signals_;
  int signal_ = 0;        // that ends this program
  bool unknown_ = false;  // whether the daemon has accepted the last job is not known
  std::vector<Sent> sent_;
  std::map<std::string, core::JobId> by_name_;
};

// Prints what would happen to each job of the plan. A job that depends on another job of the file
// is tried as if that job had ended.
int dry_run(const SubmitPlan& plan, const Output& output) {
  Result<runner::DaemonClient> client =
      runner::DaemonClient::open(runner::DaemonClient::Start::kIfNeeded);
  if (!client) return output.fail(client.error());
  int exit_code = kExitOk;
  for (const SubmitPlan::Job& job : plan.jobs) {
    wire::SubmitRequest request = job.job.request;
    std::string label = plan.jobs.size() > 1 ? request.spec.name + ": " : "";
    for (const AfterWord& after : job.job.after) {
      if (!after.name.empty()) {
        label += "after " + after.name + ", ";
        continue;
      }
      const Result<std::vector<core::JobId>> ids = resolve(after.job, client->http().path());
      if (!ids) return output.fail(ids.error());
      for (const core::JobId& id : *ids) request.spec.after.push_back({id, after.when});
    }
    const int code = print_dry_run(*client, wire::encode(request), base::printable(label), output);
    if (exit_code == kExitOk) exit_code = code;
  }
  return exit_code;
}

int run_submit(const Parsed& parsed, const Output& output) {
  SubmitPlanner planner(parsed, Surroundings::ours());
  Result<SubmitPlan> plan = planner.plan();
  if (!plan) return output.fail(plan.error(), planner.exit_code(plan.error()));
  if (const Result<void> r = check_is_there(parsed); !r)
    return output.fail(r.error(), kExitBadFile);
  if (!parsed.has("--quiet"))
    for (const std::string& warning : plan->warnings) output.say(warning);
  if (parsed.has("--print")) {
    output.data(output.json() ? plan_as_json(*plan) : plan_as_yaml(*plan));
    return kExitOk;
  }
  if (parsed.has("--dry-run")) return dry_run(*plan, output);
  return submit_plan(
      *std::move(plan), output, [](const wire::SubmitReply& reply) { return to_string(reply.id); },
      parsed.has("--quiet"));
}

}  // namespace

std::string random_key() {
  std::array<char, 16> bytes{};
  METE_ASSERT(getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return base::hex_of(bytes);
}

int submit_plan(SubmitPlan plan, const Output& output, const SubmittedText& text, bool quiet) {
  Result<runner::DaemonClient> client =
      runner::DaemonClient::open(runner::DaemonClient::Start::kIfNeeded);
  if (!client) return output.fail(client.error());
  return Submitter(*std::move(client), output, text, quiet).submit(std::move(plan));
}

const Verb kSubmitVerb{
    "submit",
    "queue a job that runs in the background, and print its id",
    "mete submit [options] [--] command [argument...]\n"
    "mete submit [options] script.sh [argument...]\n"
    "mete submit [options] -f job.yaml",
    "mete submit --gpu 40% --time 2h -- python train.py\n"
    "mete submit --gpu 8G --after @:ok -- python evaluate.py\n"
    "mete submit --gpu 1 --array 0-99%4 -- ./simulate\n"
    "mete submit train.sh                # with #METE or #SBATCH lines\n"
    "mete submit -f job.yaml --dry-run   # what would happen?",
    "The job waits in the queue and runs without a terminal, with the environment, folder and "
    "umask of this shell. It survives the end of this shell and a restart of the daemon. mete ps "
    "lists it, mete logs -f @ follows its output, mete wait @ returns its exit code, mete cancel @ "
    "ends it.\n"
    "\n"
    "If the first word is a file that begins with #!, it is a script: mete reads its text now and "
    "sends it with the job. Its #METE and #SBATCH lines are options; options on the command line "
    "override them. After --, a script is an ordinary program and runs from its own path.",
    submit_options(),
    Rest::kCommand,
    run_submit,
    {},
    {"sbatch"},
};

}  // namespace mete::cli
