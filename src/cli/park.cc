// SPDX-License-Identifier: Apache-2.0
// `mete park ID...` and `mete unpark ID...`: a running job gives its GPU memory back, and gets it
// again. ParkVerb sends the order for each job or array; Watch then polls each affected job (long
// poll by tag) until it has arrived, shows what it waits for, and turns its final state into a
// sentence or an error. --no-wait skips that.
#include <array>
#include <chrono>
#include <utility>

#include "cli/named_jobs.h"
#include "cli/status_line.h"
#include "cli/verbs.h"
#include "runner/lasting_client.h"
#include "seam/clock.h"
#include "wire/job.h"
#include "wire/job_text.h"
#include "wire/queue.h"

namespace mete::cli {

namespace {

using core::JobState;

constexpr OptionSpec kAtOnce{"--no-wait", "", "do not wait until it is done"};
constexpr std::array kParkOptions{
    OptionSpec{"--deep", "", "park contexts too, through the driver's checkpoint; slower"}, kAtOnce,
    kOutputOption};
constexpr std::array kUnparkOptions{kAtOnce, kOutputOption};

std::string in_seconds(std::chrono::nanoseconds time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
  std::string digits = std::to_string(ms % 1000 / 10);
  if (digits.size() < 2) digits.insert(0, "0");
  return std::to_string(ms / 1000) + "." + digits + " s";
}

class Watch {
 public:
  Watch(runner::LastingClient& client, const Output& output, bool park)
      : client_(client), output_(output), park_(park) {}

  // Waits until the job is no longer on its way, whether it got where it should or not.
  Result<wire::JobView> wait_for(core::JobId id) {
    std::string tag = "-";
    for (;;) {
      const Result<std::string> body =
          client_.call("GET", job_target(id, "?since=" + tag), {}, {std::nullopt, -1});
      if (!body) return body.error();
      Result<wire::RunReply> reply = wire::decode_run_reply(*body);
      if (!reply) return std::move(reply).error();
      tag = reply->tag;
      const core::Job& job = reply->view.job;
      const bool returns = job.park && job.park->wants_back && !job.park->lost;
      const bool waits = park_ ? job.state == JobState::kParking
                               : job.state == JobState::kUnparking ||
                                     job.state == JobState::kParking ||
                                     (job.state == JobState::kParked && returns);
      if (!waits) {
        line_.clear();
        return std::move(reply->view);
      }
      if (!reply->view.wait) continue;
      const std::string waits_for =
          "waits for " + wire::wait_text(*reply->view.wait, seam::system_clock().wall());
      line_.draw(waits_for);
      if (!line_.terminal() && !std::exchange(said_, true))
        output_.say("job " + to_string(id) + " " + waits_for);
    }
  }

  // The sentence about the result; an error: the order was not carried out.
  Result<std::string> outcome(const wire::JobView& view, bool changed) const {
    const core::Job& job = view.job;
    const std::string name = "job " + to_string(job.id);
    const std::string took = " (" + in_seconds(seam::system_clock().monotonic() - began_) + ")";
    const bool there = job.state == (park_ ? JobState::kParked : JobState::kRunning);
    if (there && !changed) return name + (park_ ? " is parked already" : " is not parked");
    if (!park_ && job.state == JobState::kParked && job.park->lost)
      return Error::io(name + " cannot come back")
          .with_evidence(job.park->why)
          .with_hint("mete requeue " + to_string(job.id) + " starts it anew, mete cancel ends it");
    if (there && park_) return name + " is parked: " + wire::park_text(job) + took;
    if (there) return name + " is back" + took;
    if (job.state == JobState::kRunning)
      return Error::busy(name + " was not parked, and runs on")
          .with_evidence(job.unparkable ? job.unparkable->why : "somebody asked for it back");
    const bool ends = job.state == JobState::kStopping || job.state == JobState::kEnded;
    return Error::busy(name + " is " + std::string(to_string(job.state)))
        .with_evidence(ends ? "it was cancelled or has ended meanwhile"
                            : "somebody asked for that");
  }

 private:
  runner::LastingClient& client_;
  const Output& output_;
  bool park_;
  StatusLine line_;
  bool said_ = false;  // said what it waits for
  seam::Nanoseconds began_ = seam::system_clock().monotonic();
};

// One call of park or unpark, for the named jobs.
class ParkVerb {
 public:
  ParkVerb(const Parsed& parsed, runner::DaemonClient client, const Output& output, bool park)
      : parsed_(parsed),
        client_(std::move(client), output.talk()),
        output_(output),
        failures_(output),
        park_(park) {}

  int go() {
    for (const core::JobId id : named_jobs(parsed_.rest, client_.socket(), failures_)) {
      one(id);
      if (client_.silent()) break;  // each of the others would wait as long
    }
    if (output_.json()) output_.data(wire::encode(all_));
    return failures_.exit_code();
  }

 private:
  void one(core::JobId id) {
    Watch watch(client_, output_, park_);
    const std::string path = park_ ? (parsed_.has("--deep") ? "/park?deep=1" : "/park") : "/unpark";
    const Result<std::string> body = client_.call("POST", job_target(id, path));
    // If the order was sent twice, the answer lacks what the first one changed.
    const bool repeated = client_.repeated();
    const Result<wire::ChangedDocument> answer =
        body ? wire::decode_changed(*body) : Result<wire::ChangedDocument>(body.error());
    if (!answer) return failures_.add(answer.error());
    if (parsed_.has("--no-wait")) return at_once(id);
    const bool known = !answer->changed.empty() && !repeated;
    const Result<std::vector<core::JobId>> jobs =
        known ? Result<std::vector<core::JobId>>(answer->changed) : under_way(id);
    if (!jobs) return failures_.add(jobs.error());
    if (jobs->empty()) output_.say("job " + to_string(id) + ": nothing to change");
    for (const core::JobId each : *jobs) {
      Result<wire::JobView> view = watch.wait_for(each);
      if (!view) {
        failures_.add(view.error());
        if (client_.silent()) return;
        continue;
      }
      const Result<std::string> said = watch.outcome(*view, repeated || !answer->changed.empty());
      if (!said)
        failures_.add(said.error());
      else if (!output_.json())
        output_.say(*said);
      all_.jobs.push_back(*std::move(view));
    }
  }

  void at_once(core::JobId id) {
    output_.say("job " + to_string(id) + (park_ ? " is being parked" : " may come back"));
    if (!output_.json()) return;
    const Result<std::string> now = client_.call("GET", job_target(id, ""));
    Result<wire::RunReply> reply =
        now ? wire::decode_run_reply(*now) : Result<wire::RunReply>(now.error());
    if (reply)
      all_.jobs.push_back(std::move(reply->view));
    else
      failures_.add(reply.error());
  }

  // The job, or the elements of an array that are parked or on their way, by this order or an
  // earlier one.
  Result<std::vector<core::JobId>> under_way(core::JobId id) {
    const Result<std::string> list = client_.call("GET", "/v1/jobs?all=1&id=" + to_string(id));
    const Result<std::vector<wire::JobView>> views = list ? wire::decode_ps(*list) : list.error();
    if (!views) return views.error();
    std::vector<core::JobId> jobs;
    for (const wire::JobView& view : *views) {
      const JobState state = view.job.state;
      if (view.job.id == id || state == JobState::kParking || state == JobState::kUnparking ||
          (state == JobState::kParked && (park_ || view.job.park->wants_back)))
        jobs.push_back(view.job.id);
    }
    return jobs;
  }

  const Parsed& parsed_;
  runner::LastingClient client_;
  const Output& output_;
  Failures failures_;
  bool park_;
  wire::ParkDocument all_{seam::system_clock().wall(), {}};
};

int go(const Parsed& parsed, const Output& output, bool park) {
  Result<runner::DaemonClient> client = open_for_words(park ? "park" : "unpark", parsed.rest);
  if (!client) return output.fail(client.error());
  return ParkVerb(parsed, *std::move(client), output, park).go();
}

int run_park(const Parsed& parsed, const Output& output) { return go(parsed, output, true); }
int run_unpark(const Parsed& parsed, const Output& output) { return go(parsed, output, false); }

}  // namespace

const Verb kParkVerb{
    "park",
    "move the GPU memory of running jobs to host memory",
    "mete park ID... [--deep] [--no-wait] [-o json]",
    "mete park 12\n"
    "mete unpark 12              # the same bytes at the same addresses",
    "The program stops at its next use of a card, its GPU memory moves to host memory, and other "
    "jobs can use the room until mete unpark. Works for jobs that were started with --preemptible "
    "or with a share that grows; with --deep also for other jobs, through the driver's checkpoint. "
    "A job that cannot be parked continues to run; mete park prints the reason and returns exit "
    "code 75.",
    kParkOptions,
    Rest::kWords,
    run_park,
};

const Verb kUnparkVerb{
    "unpark",
    "move the memory of parked jobs back to their cards",
    "mete unpark ID... [--no-wait] [-o json]",
    "mete unpark 12\n"
    "mete unpark @ --no-wait     # the job returns when there is room",
    "Waits until there is room on the job's cards, in the queue together with jobs that have not "
    "started, and until the memory is back. After Ctrl-C the job stays in the queue.",
    kUnparkOptions,
    Rest::kWords,
    run_unpark,
};

}  // namespace mete::cli
