// SPDX-License-Identifier: Apache-2.0
// `mete wait ID...`: returns when the jobs have ended, with the exit code of the first that failed.
// Ctrl-C ends the wait, never a job. Each job is a long poll of /wait, repeated over restarts of
// the daemon: for all jobs one after the other, for --any all at once on a connection each.
// ProgressLine asks beside the wait what to draw.
#include <poll.h>

#include <array>
#include <memory>

#include "cli/named_jobs.h"
#include "cli/status_line.h"
#include "cli/verbs.h"
#include "runner/lasting_client.h"
#include "seam/clock.h"
#include "wire/job_text.h"
#include "wire/queue.h"
#include "wire/show.h"

namespace mete::cli {

namespace {

constexpr std::array kWaitOptions{
    OptionSpec{"--any", "", "return when one of the jobs has ended"},
    kOutputOption,
};
constexpr net::Milliseconds kTick{1'000};
constexpr std::size_t kMaxAtOnce = 100;  // connections with --any
constexpr std::size_t kMaxNamed = 10;    // failures that get a line each

// Progress of the jobs of one id, for the line on a terminal.
struct Progress {
  std::uint64_t ended = 0;
  std::uint64_t all = 0;
  std::string sentence;  // for a single job
};

Progress progress_of(const wire::ShowDocument& shown) {
  if (shown.elements.empty())
    return {shown.view.job.state == core::JobState::kEnded ? 1u : 0u, 1,
            wire::sentence(shown.view, shown.at)};
  Progress progress;
  for (const auto& [state, count] : shown.elements) {
    progress.all += count;
    if (state == to_string(core::JobState::kEnded)) progress.ended += count;
  }
  return progress;
}

// Draws only on a terminal, and only what it can learn beside the wait.
class ProgressLine {
 public:
  explicit ProgressLine(std::vector<core::JobId> ids) : ids_(std::move(ids)) {}
  ~ProgressLine() { line_.clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void draw() {
    if (!line_.terminal() || ids_.size() > kMaxAtOnce) return;
    Progress sum;
    for (const core::JobId id : ids_) {
      const std::optional<Progress> one = ask(id);
      if (!one) return;
      sum.ended += one->ended;
      sum.all += one->all;
      sum.sentence = one->sentence;
    }
    line_.draw("mete: " + (sum.all == 1 ? sum.sentence
                                        : std::to_string(sum.ended) + " of " +
                                              std::to_string(sum.all) + " jobs have ended"));
  }

 private:
  std::optional<Progress> ask(core::JobId id) {
    if (!client_) {
      Result<runner::DaemonClient> client =
          runner::DaemonClient::open(runner::DaemonClient::Start::kNever);
      if (!client) return std::nullopt;
      client_.emplace(*std::move(client));
    }
    const Result<std::string> body = client_->call("GET", job_target(id, "/show"), {}, {kTick, -1});
    const Result<wire::ShowDocument> shown = body ? wire::decode_show(*body) : body.error();
    if (!body) client_.reset();
    return shown ? std::optional(progress_of(*shown)) : std::nullopt;
  }

  std::vector<core::JobId> ids_;
  StatusLine line_;
  std::optional<runner::DaemonClient> client_;
};

// One after the other: the answer for a job that has ended comes at once.
std::vector<wire::JobView> wait_for_all(runner::DaemonClient client,
                                        const std::vector<core::JobId>& ids, const Output& output,
                                        Failures& failures) {
  std::vector<wire::JobView> jobs;
  runner::LastingClient daemon(std::move(client), output.talk());
  ProgressLine line(ids);
  for (const core::JobId id : ids) {
    daemon.begin(job_target(id, "/wait"));
    std::optional<Result<std::string>> body;
    while (!(body = daemon.next(kTick))) line.draw();
    const Result<wire::WaitDocument> ended =
        *body ? wire::decode_wait(**body) : Result<wire::WaitDocument>(body->error());
    if (ended)
      jobs.insert(jobs.end(), ended->jobs.begin(), ended->jobs.end());
    else
      failures.add(ended.error());
  }
  return jobs;
}

// All at once, on a connection each; the first job that has ended is enough.
class WaitForAny {
 public:
  WaitForAny(const std::vector<core::JobId>& ids, const Output& output, Failures& failures)
      : ids_(ids), output_(output), failures_(failures) {}

  Result<std::vector<wire::JobView>> go() {
    for (const core::JobId id : ids_) {
      Result<runner::DaemonClient> client = runner::DaemonClient::open_for_jobs();
      if (!client) return client.error();
      asked_.push_back(std::make_unique<runner::LastingClient>(*std::move(client), output_.talk()));
      asked_.back()->begin(job_target(id, "/wait?any=1"));
    }
    ProgressLine line(ids_);
    while (!asked_.empty()) {
      if (std::vector<wire::JobView> ended = look(); !ended.empty()) return ended;
      line.draw();
      pause();
    }
    return std::vector<wire::JobView>();
  }

 private:
  std::vector<wire::JobView> look() {
    for (std::size_t i = 0; i < asked_.size();) {
      const std::optional<Result<std::string>> body = asked_[i]->next(net::Milliseconds(0));
      const Result<wire::WaitDocument> ended = body && *body ? wire::decode_wait(**body)
                                               : body ? Result<wire::WaitDocument>(body->error())
                                                      : wire::WaitDocument{};
      if (!ended) {
        failures_.add(ended.error());
        asked_.erase(asked_.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      for (const wire::JobView& view : ended->jobs)
        if (view.job.state == core::JobState::kEnded) return {view};
      ++i;
    }
    return {};
  }

  void pause() const {
    std::vector<pollfd> ready;
    for (const std::unique_ptr<runner::LastingClient>& client : asked_)
      ready.push_back({client->descriptor(), POLLIN, 0});
    (void)poll(ready.data(), ready.size(), static_cast<int>(kTick.count()));
  }

  const std::vector<core::JobId>& ids_;
  const Output& output_;
  Failures& failures_;
  std::vector<std::unique_ptr<runner::LastingClient>> asked_;
};

// Prints the failures; returns the code of the first.
int report(const std::vector<wire::JobView>& jobs, const Output& output) {
  const WallTime now = seam::system_clock().wall();
  int exit_code = kExitOk;
  std::size_t failed = 0;
  for (const wire::JobView& view : jobs) {
    const int code = wire::exit_code_of_job(view.job);
    if (code == kExitOk) continue;
    if (exit_code == kExitOk) exit_code = code;
    if (++failed <= kMaxNamed && !output.json()) output.say(wire::sentence(view, now));
  }
  if (failed > kMaxNamed && !output.json())
    output.say("and " + std::to_string(failed - kMaxNamed) + " more have not ended well");
  if (output.json()) output.data(wire::encode(wire::WaitDocument{now, jobs}));
  return exit_code;
}

int run_wait(const Parsed& parsed, const Output& output) {
  Result<runner::DaemonClient> client = open_for_words("wait", parsed.rest);
  if (!client) return output.fail(client.error());
  Failures failures(output);
  const std::vector<core::JobId> ids = named_jobs(parsed.rest, client->http().path(), failures);
  std::vector<wire::JobView> jobs;
  if (parsed.has("--any")) {
    if (ids.size() > kMaxAtOnce)
      return output.fail(
          Error::invalid("--any waits for " + std::to_string(kMaxAtOnce) + " jobs at most")
              .with_hint("the number of an array stands for all of it"));
    Result<std::vector<wire::JobView>> ended = WaitForAny(ids, output, failures).go();
    if (!ended) return output.fail(ended.error());
    jobs = *std::move(ended);
  } else {
    jobs = wait_for_all(*std::move(client), ids, output, failures);
  }
  const int exit_code = report(jobs, output);
  return failures.exit_code() != kExitOk ? failures.exit_code() : exit_code;
}

}  // namespace

const Verb kWaitVerb{
    "wait",
    "wait until jobs have ended, and return their exit code",
    "mete wait ID... [--any] [-o json]",
    "id=$(mete submit --gpu 8G -- python train.py)\n"
    "mete wait $id && echo done\n"
    "mete wait 12 13             # both\n"
    "mete wait --any 12          # the first job of array 12 that ends",
    "Returns the exit code of the job: the program's own; 128+N after signal N; 124 after its time "
    "limit or deadline; 143 if it was cancelled; 125 if it was lost or never ran. For several "
    "jobs, returns the code of the first job in the given order that did not succeed. Ctrl-C stops "
    "mete wait, not the job.",
    kWaitOptions,
    Rest::kWords,
    run_wait,
};

}  // namespace mete::cli
