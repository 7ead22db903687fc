// SPDX-License-Identifier: Apache-2.0
// `mete run`: waits in the queue, then runs the program as a small parent in the same terminal.
// wait_for_cards() submits the job and long-polls it until it is granted; run() executes it through
// runner/job_runner, with hooks that report to the daemon and hear from it. Requests are repeated
// over restarts of the daemon: it knows us by our pid, and we find it again by its socket.
#include "cli/run.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/dry_run.h"
#include "cli/run_plan.h"
#include "cli/verbs.h"
#include "cli/wait_line.h"
#include "cli/wait_signals.h"
#include "config/config.h"
#include "node/proc.h"
#include "runner/daemon_client.h"
#include "runner/job_runner.h"
#include "runner/parker.h"
#include "runner/runner_line.h"
#include "runner/ungranted.h"
#include "seam/clock.h"
#include "wire/job.h"
#include "wire/job_text.h"
#include "wire/wait_text.h"

namespace mete::cli {

namespace {

using core::JobState;

constexpr net::Milliseconds kReportPatience{5'000};
constexpr net::Milliseconds kFirstAnswer{20'000};
constexpr int kTickMs = 1'000;
constexpr int kMaxFailures = 60;  // consecutive failures to reach the daemon
constexpr int kMaxStarts = 8;     // consecutive failures before there is a job
constexpr int kMaxAway = 600;     // consecutive failures of a daemon that we must not start
constexpr int kSayAway = 3;
constexpr int kTurnedAway = 2;  // failures counted for a busy daemon: it is asked until it has time
constexpr int kMaxForgotten = 3;
constexpr std::chrono::seconds kLookEvery{5};  // at the queue, for the line of a terminal
constexpr net::Milliseconds kLookPatience{1'000};
// A program that ends sooner is reported once: start and end together.
constexpr int kFirstTickMs = 50;

std::string job_path(core::JobId id) { return "/v1/jobs/" + to_string(id); }

std::uint64_t start_ticks(pid_t pid) {
  const Result<node::ProcessStat> stat = node::read_stat(pid);
  return stat ? stat->start_ticks : 0;
}

// One `mete run`, from the request to the exit code.
class Run {
 public:
  Run(RunPlan plan, const Output& output, Companion* companion)
      : plan_(std::move(plan)), output_(output), companion_(companion) {
    if (companion_ != nullptr) companion_->begin(signals_.descriptor());
  }

  int go() {
    Result<wire::RunReply> granted = wait_for_cards();
    if (!granted && interrupted_ != 0) return 128 + interrupted_;
    if (!granted) {
      const int code = output_.fail(granted.error(), exit_code(granted.error()));
      if (companion_ != nullptr) companion_->failed(granted.error());
      return code;
    }
    if (companion_ != nullptr) companion_->granted();
    return run(*granted);
  }

 private:
  int exit_code(const Error& error) const {
    if (went_away_) return kExitFailed;  // "busy" is then not about cards
    // The daemon's error names the place of the mistake, but not that it is in a file.
    if (!id_ && error.code == ErrorCode::kInvalid &&
        !config::load_config(config::ConfigPlaces::from_environment(true)))
      return kExitBadFile;
    return exit_code_of(error.code);
  }

  // ---- waiting ----

  Result<wire::RunReply> wait_for_cards() {
    Result<wire::RunReply> reply = submit();
    if (reply && !reply->note.empty() && !plan_.quiet) output_.say(reply->note);
    while (reply && reply->view.job.state == JobState::kPending) {
      id_ = reply->view.job.id;
      show_wait(reply->view);
      if (companion_ != nullptr) companion_->waits(what_);
      reply = next_news(reply->tag);
      // The daemon's state was removed, and our place with it: the end of the queue is better than
      // an error.
      if (!reply && reply.error().code == ErrorCode::kNotFound && interrupted_ == 0 &&
          ++forgotten_ <= kMaxForgotten) {
        id_.reset();
        reply = submit();
      }
    }
    line_.clear();
    if (!reply) return reply;
    id_ = reply->view.job.id;
    if (reply->view.job.state == JobState::kEnded)
      return Error::io("job " + to_string(*id_) + " was ended before it started");
    return reply;
  }

  void show_wait(const wire::JobView& view) {
    const WallTime now = seam::system_clock().wall();
    what_ = view.wait ? wire::wait_text(*view.wait, now) : "";
    if (line_.wants(what_, waited_s())) look_at_queue();
    line_.show(what_, queue_, waited_s());
  }

  // The place in the queue and the forecast, which change without news of the job: asked on a
  // connection of their own. What cannot be found out at once is left as it was.
  void look_at_queue() {
    looked_ = seam::system_clock().monotonic();
    Result<runner::DaemonClient> client =
        runner::DaemonClient::open_again({socket_}, runner::DaemonClient::Start::kNever);
    if (!client) return;
    const Result<std::string> body = client->call("GET", "/v1/jobs?id=" + to_string(*id_), {},
                                                  {kLookPatience, signals_.descriptor()});
    const Result<std::vector<wire::JobView>> views = body ? wire::decode_ps(*body) : body.error();
    if (!views || views->size() != 1) return;
    queue_ = wire::queue_text(views->front(), seam::system_clock().wall());
  }

  void refresh_line() {
    if (line_.wakes() && id_ && seam::system_clock().monotonic() - looked_ >= kLookEvery) {
      look_at_queue();
      line_.show(what_, queue_, waited_s());
    }
    line_.refresh(waited_s());
  }

  // A repeated request of one runner refers to the same job.
  Result<wire::RunReply> submit() {
    wire::RunRequest request = request_of(plan_);
    request.runner_start_ticks = start_ticks(getpid());
    return ask_on("POST", "/v1/jobs", wire::encode(request));
  }

  // Waits until the job has changed.
  Result<wire::RunReply> next_news(const std::string& tag) {
    Result<wire::RunReply> reply = ask_on("GET", job_path(*id_) + "?tag=" + tag, "");
    if (!reply && interrupted_ != 0) {
      line_.clear();
      (void)ask_on("DELETE", job_path(*id_), "");
    }
    return reply;
  }

  // Repeats the request until it is answered, over restarts of the daemon. Gives up after a while
  // on a daemon that cannot be reached or started.
  Result<wire::RunReply> ask_on(std::string_view method, const std::string& target,
                                const std::string& request) {
    for (int failures = 0;; ++failures) {
      const bool had_answer = client_.has_value();
      Result<std::string> body = ask(method, target, request);
      if (body) return understood(wire::decode_run_reply(*body));
      // Without a job nothing is lost: a daemon that never comes up is soon an error.
      const int most = !id_ ? kMaxStarts : may_start_ ? kMaxFailures : kMaxAway;
      if (!went_away_ || failures == most || (interrupted_ != 0 && method != "DELETE") ||
          (interrupted_ != 0 && !may_start_ && failures == kSayAway))
        return std::move(body).error();
      if (client_ && client_->turned_away()) failures = std::min(failures, kTurnedAway);
      client_.reset();
      if (id_ && !may_start_ && failures == kSayAway) {
        line_.clear();
        output_.say("the machine's daemon is away; job " + to_string(*id_) +
                    " has its place when it comes back");
      }
      // Other clients may be starting it too; a daemon that died at its start was killed.
      if (!had_answer || failures > 2) pause_or_signal(20 * failures);
    }
  }

  // Readable when take_signal() may have something.
  int signals() const {
    return companion_ != nullptr ? companion_->descriptor() : signals_.descriptor();
  }

  // The signal that ends the wait; 0: none.
  int take_signal() {
    while (const int number = signals_.take())
      if (companion_ == nullptr || !companion_->takes(number)) return number;
    return companion_ != nullptr && companion_->is_over() ? SIGTERM : 0;
  }

  void pause_or_signal(int milliseconds) {
    pollfd ready{signals(), POLLIN, 0};
    (void)poll(&ready, 1, std::min(milliseconds, 1'000));
  }

  Result<void> connect() {
    if (client_) return {};
    Result<runner::DaemonClient> client = open(runner::DaemonClient::Start::kIfNeeded, signals());
    if (client && !known_)
      if (Result<void> r = check_version(*client); !r) client = std::move(r).error();
    if (!client) {
      if (interrupted_ == 0) interrupted_ = take_signal();
      Error error = std::move(client).error();
      // The daemon gave no answer, or died at its start; its other errors are answers.
      went_away_ = error.code == ErrorCode::kBusy || error.code == ErrorCode::kIo ||
                   (!socket_.empty() && !may_start_ && error.code == ErrorCode::kNotFound);
      return error;
    }
    client_.emplace(*std::move(client));
    return {};
  }

  // Any program may listen at a path: one that does not answer this soon is not our daemon. (A
  // request for cards may take as long as the driver does.)
  Result<void> check_version(runner::DaemonClient& client) {
    const Result<std::string> body =
        client.call("GET", "/v1/version", {}, {kFirstAnswer, signals()});
    if (!body && client.http().stopped() == net::HttpClient::Stopped::kTimeout)
      return Error::corrupt("what listens at " + client.http().path() + " does not answer")
          .with_evidence("process " + std::to_string(client.http().peer().pid) + " of user " +
                         std::to_string(client.http().peer().uid))
          .with_hint("end it, or set METE_SOCKET to another path");
    if (!body) return body.error();
    known_ = true;
    return {};
  }

  // Always the daemon that was found first.
  Result<runner::DaemonClient> open(runner::DaemonClient::Start start, int interrupt = -1) {
    if (!may_start_) start = runner::DaemonClient::Start::kNever;
    Result<runner::DaemonClient> client =
        socket_.empty() ? runner::DaemonClient::open(start, interrupt)
                        : runner::DaemonClient::open_again({socket_}, start, interrupt);
    if (client && socket_.empty()) {
      socket_ = client->http().path();
      may_start_ = client->may_start();
    }
    return client;
  }

  // Sends a request that may take hours; keeps the status line alive and reacts to signals.
  Result<std::string> ask(std::string_view method, const std::string& target,
                          std::string_view body) {
    went_away_ = false;
    if (Result<void> r = connect(); !r) return std::move(r).error();
    const bool ending = interrupted_ != 0;
    const net::Wait wait{line_.wakes() ? std::optional(net::Milliseconds(1'000)) : std::nullopt,
                         ending ? -1 : signals()};
    Result<std::string> answer = client_->call(method, target, body, wait);
    while (!answer && client_->http().stopped() != net::HttpClient::Stopped::kNo) {
      if (client_->http().stopped() == net::HttpClient::Stopped::kInterrupted && !ending) {
        interrupted_ = take_signal();
        if (interrupted_ != 0) {
          client_->http().abandon();
          return answer;
        }
      }
      refresh_line();
      answer = client_->receive(wait);
    }
    if (!answer && client_->turned_away() && !ending && interrupted_ == 0)
      interrupted_ = take_signal();
    went_away_ = !answer && (client_->went_away() || client_->turned_away());
    return answer;
  }

  // The answer is from another version, or not from a daemon; never a mistake of the user.
  static Result<wire::RunReply> understood(Result<wire::RunReply> reply) {
    if (reply) return reply;
    return Error::corrupt("the daemon's answer is not understood")
        .with_evidence(reply.error().message)
        .with_hint("mete daemon stop; the next command starts the daemon that belongs to it");
  }

  std::int64_t waited_s() {
    return std::chrono::duration_cast<std::chrono::seconds>(seam::system_clock().monotonic() -
                                                            began_)
        .count();
  }

  // ---- running ----

  int run(const wire::RunReply& reply) {
    runner::JobPlan job = plan_.job;
    if (Result<void> r = fill(job, reply); !r) return launch_failed(std::move(r).error());
    if (!plan_.quiet) say_grant(job);
    signals_.restore();
    if (plan_.exec) return replace(job);
    runner::JobHooks hooks;
    hooks.made = [&](const launch::GrantFile* grant) {
      if (grant != nullptr)
        parker_.emplace(*grant, runner::Parker::Settings::of(job, socket_, *id_));
    };
    hooks.ended = [this] { parker_.reset(); };
    hooks.stands_still = [this] { return parker_ && parker_->is_away(); };
    hooks.started = [this](pid_t pid) { report_start(pid); };
    news_.emplace(runner::DaemonAt{socket_}, *id_);
    hooks.watch_fd = [this] { return news_->descriptor(); };
    hooks.watched = [this] { return hear(); };
    hooks.tick_ms = [this] { return tick_ms(); };
    hooks.tick = [this] { return tick(); };
    hooks.who_holds = [&] {
      return runner::who_holds_ungranted({socket_}, runner::uuids_of(job), job.job);
    };
    const Result<runner::JobEnd> end = runner::run_job(job, hooks, output_.talk());
    if (!end) return launch_failed(end.error());
    core::Exit exit;
    exit.not_started = !end->ended.started;
    exit.timed_out = end->ended.timed_out;
    exit.ram_oom = end->ram_oom && end->ended.exit_code != 0;
    exit.gpu_oom = end->refused && end->ended.exit_code != 0;
    exit.peaks = end->peaks;
    exit.note = end->card_full;
    if (end->ended.signal != 0)
      exit.signal = end->ended.signal;
    else
      exit.code = end->ended.exit_code;
    report_end(exit);
    if (!end->ended.started)
      return output_.fail(runner::cannot_run(job, end->ended), end->ended.exit_code);
    if (end->ended.timed_out) {
      output_.say("the time limit of " +
                  base::duration_in_words(static_cast<std::int64_t>(*plan_.job.spec.time_s)) +
                  " is over");
      return kExitTimeout;
    }
    return end->ended.exit_code;
  }

  void say_grant(const runner::JobPlan& job) {
    if (output_.json())
      output_.say_json(grant_json(job, to_string(*id_)));
    else
      output_.say("job " + to_string(*id_) + ": " + describe(job));
  }

  // Takes the daemon's decision into the plan.
  Result<void> fill(runner::JobPlan& job, const wire::RunReply& reply) {
    job.job = to_string(*id_);
    job.attempt = reply.view.job.attempt;
    job.driver = reply.driver;
    job.readings = reply.readings;
    const std::vector<core::GrantedCard>& grant = reply.view.job.grant;
    if (grant.empty()) return {};
    Result<launch::Parts> parts = launch::find_parts();
    if (!parts) return std::move(parts).error();
    job.parts = *std::move(parts);
    const Result<bool> simulated = runner::is_simulated(job.parts);
    if (!simulated) return simulated.error();
    job.simulated = *simulated;
    if (Result<void> r = runner::check_simulation(reply.simulated); !r) return r;
    Result<std::vector<core::CardShare>> cards = runner::shares_of(grant, reply.cards);
    if (!cards) return std::move(cards).error();
    job.cards = *std::move(cards);
    job.park = reply.park;
    return {};
  }

  int tick_ms() const {
    const int own = told_start_ ? kTickMs : kFirstTickMs;
    return parker_ ? std::min(own, parker_->tick_ms()) : own;
  }

  bool tick() {
    if (parker_) parker_->step();
    const seam::Nanoseconds now = seam::system_clock().monotonic();
    const auto since = now - last_mend_;
    if (since < std::chrono::milliseconds(told_start_ ? kTickMs : kFirstTickMs)) return false;
    last_mend_ = now;
    // From now on one connection, for listening, is enough.
    client_.reset();
    if (!told_start_) tell_start();
    if (told_start_) news_->mend();
    return companion_ != nullptr && companion_->is_over();
  }

  int launch_failed(const Error& error) {
    core::Exit exit;
    exit.not_started = true;
    report_end(exit);
    return output_.fail(error, runner::exit_code_of_launch(error));
  }

  int replace(const runner::JobPlan& job) {
    report_start(getpid());
    // There will be no other process to report it: the daemon learns by this that the program is
    // its own runner.
    for (int failures = 0; !told_start_ && failures < kMaxStarts; ++failures) {
      if (failures > 0) pause_or_signal(20 * failures);
      tell_start();
    }
    client_.reset();
    const Error error = runner::exec_job(job, output_.talk());
    core::Exit exit;
    exit.not_started = true;
    report_end(exit);
    const int code = error.code == ErrorCode::kNotFound ? kExitNotFound
                     : error.code == ErrorCode::kDenied ? kExitCannotRun
                                                        : kExitFailed;
    return output_.fail(error, code);
  }

  void report_start(pid_t pid) {
    program_ = core::ProcessRef{pid, start_ticks(pid)};
    program_began_ = last_mend_ = seam::system_clock().monotonic();
  }

  wire::StartReport start_report() const {
    const auto ago = std::chrono::duration_cast<std::chrono::milliseconds>(
        seam::system_clock().monotonic() - program_began_);
    return {*program_, static_cast<std::uint64_t>(ago.count())};
  }

  // The daemon may be away: the program runs all the same, and tick() reports it later.
  void tell_start() {
    const Result<wire::RunReply> told =
        runner::tell_daemon({socket_}, *id_, "started", wire::encode(start_report()));
    told_start_ = told || told.error().code != ErrorCode::kIo;
  }

  // News of the job while the program runs. True: the job is to be ended.
  bool hear() {
    const std::optional<wire::RunReply> reply = news_->hear();
    if (!reply) return false;
    if (parker_) parker_->hear(*reply);
    if (companion_ != nullptr) companion_->hears(reply->view);
    const bool stopping = reply->view.job.state == JobState::kStopping;
    if (!stopping && !plan_.quiet) warn(reply->view);
    // A remark says that a policy, not a user, ended it.
    if (stopping && !reply->view.remark.empty() && !std::exchange(said_why_, true))
      output_.say("job " + to_string(*id_) + " is " + said(reply->view));
    return stopping;
  }

  static std::string said(const wire::JobView& view) {
    return wire::remark_text(view.remark, seam::system_clock().wall());
  }

  // Warns of memory outside the meter and of idling, once each.
  void warn(const wire::JobView& view) {
    const bool escaped = !view.job.escapes.empty() && !std::exchange(said_escape_, true);
    const bool idle = view.idle_since && !std::exchange(said_idle_, true);
    if (escaped || idle) output_.say("warning: job " + to_string(*id_) + ": " + said(view));
  }

  void report_end(const core::Exit& exit) {
    news_.reset();
    wire::EndReport report{exit, {}};
    if (program_ && !told_start_) report.start = start_report();
    const std::string body = wire::encode(report);
    for (int attempt = 0; attempt < kMaxFailures; ++attempt) {
      if (attempt > 2) pause_or_signal(20 * attempt);
      if (!client_) {
        Result<runner::DaemonClient> client = open(runner::DaemonClient::Start::kIfNeeded);
        if (!client) continue;
        client_.emplace(*std::move(client));
      }
      const Result<std::string> told =
          client_->call("POST", job_path(*id_) + "/ended", body, {kReportPatience, -1});
      if (told || !client_->went_away()) return;
      client_.reset();
    }
    output_.say("the daemon could not be told how job " + to_string(*id_) + " ended");
  }

  RunPlan plan_;
  const Output& output_;
  Companion* companion_;  // nullptr: there is none
  WaitSignals signals_;   // until there is a program to pass them to
  WaitLine line_;
  std::string what_;            // the job waits for
  std::string queue_;           // its place in the queue and its forecast, as last seen
  seam::Nanoseconds looked_{};  // when that was
  seam::Nanoseconds began_ = seam::system_clock().monotonic();
  std::optional<runner::DaemonClient> client_;
  bool known_ = false;     // the daemon has answered once
  bool said_why_ = false;  // said why the job was ended
  bool said_escape_ = false;
  bool said_idle_ = false;
  std::string socket_;     // of the daemon that knows our job
  bool may_start_ = true;  // the daemon is ours to start
  std::optional<core::JobId> id_;
  int interrupted_ = 0;
  int forgotten_ = 0;
  bool went_away_ = false;  // the last failure was the daemon's absence, not its answer
  std::optional<core::ProcessRef> program_;
  seam::Nanoseconds program_began_{};
  std::optional<runner::RunnerLine> news_;
  std::optional<runner::Parker> parker_;
  seam::Nanoseconds last_mend_{};
  bool told_start_ = false;
};

int dry_run(const wire::RunRequest& request, const Output& output) {
  Result<runner::DaemonClient> client =
      runner::DaemonClient::open(runner::DaemonClient::Start::kIfNeeded);
  if (!client) return output.fail(client.error());
  return print_dry_run(*client, wire::encode(request), "", output);
}

int run_verb(const Parsed& parsed, const Output& output) {
  Result<RunPlan> plan = make_run_plan(parsed);
  if (!plan) return output.fail(plan.error());
  if (parsed.has("--dry-run")) return dry_run(request_of(*plan), output);
  return run_to_the_end(*std::move(plan), output);
}

}  // namespace

int run_to_the_end(RunPlan plan, const Output& output, Companion* companion) {
  return Run(std::move(plan), output, companion).go();
}

const Verb kRunVerb{
    "run",
    "wait for room on a card, then run a program inside its share",
    "mete run --gpu SHARE [options] [--] command [argument...]",
    "mete run --gpu 0.4 -- python train.py\n"
    "mete run --gpu 16G --time 2h -- ./server --port 8000\n"
    "mete run --gpu 4x40% --procs 4 -- python train.py   # like torchrun\n"
    "mete run --gpu 1 --gpu-type H200 -- python whole_card.py\n"
    "mete run --gpu 2x60G --dry-run                      # would it start now?\n"
    "METE_SIM=4xH200 mete run --gpu 8G -- ./program      # simulated cards",
    "Waits in the queue until the share is free, reserves it, and runs the program in this "
    "terminal. The program and all processes it forks see only their cards and together never hold "
    "more than the share. The share is free again when the last process has ended.\n"
    "\n"
    "Ctrl-C while waiting leaves the queue. Ctrl-C while running goes to the program; a second "
    "Ctrl-C within a second ends the job.\n"
    "\n"
    "Exit code: the program's own; 128+N after signal N; 64 usage, 69 can never fit on this "
    "machine, 75 no room now (--no-wait), 124 time limit, 125 mete failed, 126 and 127 as in sh.",
    run_options(),
    Rest::kCommand,
    run_verb,
};

}  // namespace mete::cli
