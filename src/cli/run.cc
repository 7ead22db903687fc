// SPDX-License-Identifier: Apache-2.0
// `mete run`: waits its turn, then runs the program as a small parent in the same terminal. The
// place in line and the job are the daemon's to remember, and ours to keep: a daemon that restarts
// finds us by our pid, and we find it again by its socket.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/text.h"
#include "base/time.h"
#include "cli/explain_text.h"
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
#include "wire/explain.h"
#include "wire/job.h"
#include "wire/wait_text.h"

namespace mete::cli {

namespace {

using core::JobState;

constexpr net::Milliseconds kReportPatience{5'000};
constexpr net::Milliseconds kFirstAnswer{20'000};
constexpr int kTickMs = 1'000;
constexpr int kMaxFailures = 60;  // of reaching the daemon, one after another
constexpr int kMaxStarts = 8;     // the same, before there is a job
constexpr int kMaxAway = 600;     // the same, when it is not ours to start: about ten minutes
constexpr int kSayAway = 3;
constexpr int kTurnedAway = 2;  // it is there, and is asked on until it has time
constexpr int kMaxForgotten = 3;
// A program that ends sooner is reported once: its start together with its end.
constexpr int kFirstTickMs = 50;

std::string job_path(core::JobId id) { return "/v1/jobs/" + to_string(id); }

std::uint64_t start_ticks(pid_t pid) {
  const Result<node::ProcessStat> stat = node::read_stat(pid);
  return stat ? stat->start_ticks : 0;
}

// One `mete run`, from the request to the exit code.
class Run {
 public:
  Run(RunPlan plan, const Output& output) : plan_(std::move(plan)), output_(output) {}

  int go() {
    Result<wire::RunReply> granted = wait_for_cards();
    if (!granted && interrupted_ != 0) return 128 + interrupted_;
    if (!granted) return output_.fail(granted.error(), exit_code(granted.error()));
    return run(*granted);
  }

 private:
  int exit_code(const Error& error) const {
    if (went_away_) return kExitFailed;  // "busy" is then not about cards
    // Of what was wrong the daemon says where it is, but not that it was a file.
    if (!id_ && error.code == ErrorCode::kInvalid &&
        !config::load_config(config::ConfigPlaces::from_environment(true)))
      return kExitBadFile;
    return exit_code_of(error.code);
  }

  // ---- waiting ----

  Result<wire::RunReply> wait_for_cards() {
    Result<wire::RunReply> reply = submit();
    while (reply && reply->view.job.state == JobState::kPending) {
      id_ = reply->view.job.id;
      const core::SharedWait& wait = reply->view.wait;
      line_.show(wait ? wire::wait_text(*wait, seam::system_clock().wall()) : "", waited_s());
      reply = next_news(reply->tag);
      // Its state was removed, and with it our place: at the end of the line is better than out.
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

  // A second time for the same runner is the same job.
  Result<wire::RunReply> submit() {
    wire::RunRequest request = request_of(plan_);
    request.runner_start_ticks = start_ticks(getpid());
    return ask_on("POST", "/v1/jobs", wire::encode(request));
  }

  // Waits until the job is no longer what it was.
  Result<wire::RunReply> next_news(const std::string& tag) {
    Result<wire::RunReply> reply = ask_on("GET", job_path(*id_) + "?tag=" + tag, "");
    if (!reply && interrupted_ != 0) {
      line_.clear();
      (void)ask_on("DELETE", job_path(*id_), "");
    }
    return reply;
  }

  // Asks until there is an answer, over restarts of the daemon. One that cannot be reached or
  // started at all is given up after a while.
  Result<wire::RunReply> ask_on(std::string_view method, const std::string& target,
                                const std::string& request) {
    for (int failures = 0;; ++failures) {
      const bool had_answer = client_.has_value();
      Result<std::string> body = ask(method, target, request);
      if (body) return understood(wire::decode_run_reply(*body));
      // Without a job there is nothing to lose: a daemon that never comes up is an error soon.
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
      // Others start it too; whoever was killed while starting was killed by somebody.
      if (!had_answer || failures > 2) pause_or_signal(20 * failures);
    }
  }

  void pause_or_signal(int milliseconds) {
    pollfd ready{signals_.descriptor(), POLLIN, 0};
    (void)poll(&ready, 1, std::min(milliseconds, 1'000));
  }

  Result<void> connect() {
    if (client_) return {};
    Result<runner::DaemonClient> client =
        open(runner::DaemonClient::Start::kIfNeeded, signals_.descriptor());
    if (client && !known_)
      if (Result<void> r = check_version(*client); !r) client = std::move(r).error();
    if (!client) {
      if (interrupted_ == 0) interrupted_ = signals_.take();
      Error error = std::move(client).error();
      // Nobody answers, or it died while it was starting: not what a daemon says of itself.
      went_away_ = error.code == ErrorCode::kBusy || error.code == ErrorCode::kIo ||
                   (!socket_.empty() && !may_start_ && error.code == ErrorCode::kNotFound);
      return error;
    }
    client_.emplace(*std::move(client));
    return {};
  }

  // Anything may listen at a path: what does not answer this soon is no daemon of ours. (A request
  // for cards may take as long as the driver does.)
  Result<void> check_version(runner::DaemonClient& client) {
    const Result<std::string> body =
        client.call("GET", "/v1/version", {}, {kFirstAnswer, signals_.descriptor()});
    if (!body && client.http().stopped() == net::HttpClient::Stopped::kTimeout)
      return Error::corrupt("what listens at " + client.http().path() + " does not answer")
          .with_evidence("process " + std::to_string(client.http().peer().pid) + " of user " +
                         std::to_string(client.http().peer().uid))
          .with_hint("end it, or set METE_SOCKET to another path");
    if (!body) return body.error();
    known_ = true;
    return {};
  }

  // After the first time always the same one.
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

  // A request that may take hours, with the line kept alive and signals heard.
  Result<std::string> ask(std::string_view method, const std::string& target,
                          std::string_view body) {
    went_away_ = false;
    if (Result<void> r = connect(); !r) return std::move(r).error();
    const bool ending = interrupted_ != 0;
    const net::Wait wait{line_.wakes() ? std::optional(net::Milliseconds(1'000)) : std::nullopt,
                         ending ? -1 : signals_.descriptor()};
    Result<std::string> answer = client_->call(method, target, body, wait);
    while (!answer && client_->http().stopped() != net::HttpClient::Stopped::kNo) {
      if (client_->http().stopped() == net::HttpClient::Stopped::kInterrupted && !ending) {
        interrupted_ = signals_.take();
        if (interrupted_ != 0) {
          client_->http().abandon();
          return answer;
        }
      }
      line_.refresh(waited_s());
      answer = client_->receive(wait);
    }
    if (!answer && client_->turned_away() && !ending && interrupted_ == 0)
      interrupted_ = signals_.take();
    went_away_ = !answer && (client_->went_away() || client_->turned_away());
    return answer;
  }

  // Another version's words, or not a daemon at all; never a mistake in what was typed.
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

  // The cards that the daemon decided on.
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
    // One connection is enough for somebody who only listens.
    client_.reset();
    if (!told_start_) tell_start();
    if (told_start_) news_->mend();
    return false;
  }

  int launch_failed(const Error& error) {
    core::Exit exit;
    exit.not_started = true;
    report_end(exit);
    return output_.fail(error, runner::exit_code_of_launch(error));
  }

  int replace(const runner::JobPlan& job) {
    report_start(getpid());
    // Later there is no process that could: the daemon tells by this that the program is its own
    // runner.
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

  // The daemon may be away just now: the program runs all the same, and tick() tells it later.
  void tell_start() {
    const Result<wire::RunReply> told =
        runner::tell_daemon({socket_}, *id_, "started", wire::encode(start_report()));
    told_start_ = told || told.error().code != ErrorCode::kIo;
  }

  // Of the job, beside the program. True: somebody cancels it.
  bool hear() {
    const std::optional<wire::RunReply> reply = news_->hear();
    if (!reply) return false;
    if (parker_) parker_->hear(*reply);
    const bool stopping = reply->view.job.state == JobState::kStopping;
    if (!stopping && !plan_.quiet) warn(reply->view);
    // Ended by a policy, and not by somebody.
    if (stopping && !reply->view.remark.empty() && !std::exchange(said_why_, true))
      output_.say("job " + to_string(*id_) + " is " + said(reply->view));
    return stopping;
  }

  static std::string said(const wire::JobView& view) {
    return wire::remark_text(view.remark, seam::system_clock().wall());
  }

  // Of memory outside its meter and of idling: each is said once, however often it is seen.
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
  WaitSignals signals_;  // while we have no program to give them to
  WaitLine line_;
  seam::Nanoseconds began_ = seam::system_clock().monotonic();
  std::optional<runner::DaemonClient> client_;
  bool known_ = false;     // it has answered once
  bool said_why_ = false;  // it is ended
  bool said_escape_ = false;
  bool said_idle_ = false;
  std::string socket_;     // of the daemon that knows us
  bool may_start_ = true;  // it is ours
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

// What would happen; whoever could not start now and would not wait is told so by the exit code.
int dry_run(const wire::RunRequest& request, const Output& output) {
  Result<runner::DaemonClient> client =
      runner::DaemonClient::open(runner::DaemonClient::Start::kIfNeeded);
  if (!client) return output.fail(client.error());
  const Result<std::string> body = client->call("POST", "/v1/try", wire::encode(request));
  const Result<wire::DryRunDocument> document = body ? wire::decode_dry_run(*body) : body.error();
  if (!document) return output.fail(document.error());
  output.data(output.json() ? *body : dry_run_text(*document));
  return kExitOk;
}

int run_verb(const Parsed& parsed, const Output& output) {
  Result<RunPlan> plan = make_run_plan(parsed);
  if (!plan) return output.fail(plan.error());
  if (parsed.has("--dry-run")) return dry_run(request_of(*plan), output);
  return Run(*std::move(plan), output).go();
}

}  // namespace

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
