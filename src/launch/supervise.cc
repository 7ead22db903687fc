// SPDX-License-Identifier: Apache-2.0
// See supervise.h. One thread, one poll loop over a signalfd, the time limit, the listeners of the
// caller and a tick: no signal handler ever runs, so nothing here is interrupted. Programs are
// forked one by one and report a failure before exec through a pipe that exec closes. The loop ends
// when this process, a subreaper, has no child left but outsiders.
#include "launch/supervise.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>

#include "base/fd.h"
#include "base/process.h"
#include "launch/offspring.h"
#include "launch/process_tree.h"
#include "launch/witness.h"
#include "seam/clock.h"

namespace mete::launch {

namespace {

constexpr int kForwarded[] = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                              SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP};
constexpr std::chrono::milliseconds kStillGrace{1'000};
constexpr int kInsistSeconds = 1;  // a second Ctrl-C within this time means it
constexpr int kLookAgainMs = 100;
constexpr int kLookLaterMs = 1'000;
constexpr int kSignalsAtOnce = 64;

// A timer of 0 would never fire.
itimerspec timer_in(std::chrono::milliseconds time) {
  itimerspec when{};
  when.it_value.tv_sec = time.count() / 1000;
  when.it_value.tv_nsec = time.count() % 1000 * 1'000'000;
  if (when.it_value.tv_sec == 0 && when.it_value.tv_nsec == 0) when.it_value.tv_nsec = 1;
  return when;
}

// Sent by the child when it could not exec the program.
struct StartFailure {
  int error = 0;
  StartStep step = StartStep::kRun;
};

// Never above our own hard limit.
void set_limit(const core::ResourceLimit& limit) {
  rlimit now{};
  const auto which = static_cast<__rlimit_resource>(limit.resource);
  if (getrlimit(which, &now) != 0) return;
  rlimit wanted{limit.soft, limit.hard};
  if (setrlimit(which, &wanted) == 0) return;
  wanted.rlim_max = std::min<rlim_t>(limit.hard, now.rlim_max);
  wanted.rlim_cur = std::min<rlim_t>(limit.soft, wanted.rlim_max);
  (void)setrlimit(which, &wanted);
}

// In the child. 0, or errno.
int detach(const OwnSession& how, bool first) {
  if (setsid() < 0) return errno;
  // The program begins as after a login, whatever was blocked or ignored in us.
  sigset_t none;
  sigemptyset(&none);
  struct sigaction normal {};
  normal.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) (void)sigaction(number, &normal, nullptr);
  (void)sigprocmask(SIG_SETMASK, &none, nullptr);
  (void)umask(how.umask);
  for (const core::ResourceLimit& limit : how.limits) set_limit(limit);
  const int wanted[] = {how.input, how.output, how.error};
  for (int number = 0; number < 3; ++number)
    if (wanted[number] >= 0 && dup2(wanted[number], number) < 0) return errno;
  if (how.terminal && first && ioctl(STDIN_FILENO, TIOCSCTTY, 0) != 0) return errno;
  return 0;
}

class Supervisor {
 public:
  explicit Supervisor(const Supervision& supervision)
      : asked_(supervision), outsiders_(supervision.outsiders) {}
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  Result<ProgramEnd> run() {
    if (Result<void> r = prepare(); !r) return std::move(r).error();
    for (std::size_t rank = 0; rank < asked_.programs.size(); ++rank) {
      const Result<StartFailure> failure = start(rank);
      const bool some_ran = !leaders_.empty();
      if (!failure || failure->error != 0) abandon();
      if (!failure && some_ran) return Error::io(failure.error().message);  // not to be retried
      if (!failure) return failure.error();
      if (failure->error != 0)
        return ProgramEnd{
            false, failure->error == ENOENT ? 127 : 126, 0, failure->error, failure->step, false};
    }
    asked_.started(leaders_);
    begin_time();
    while (!finished()) {
      if (Result<void> r = wait_once(); !r) return std::move(r).error();
    }
    return ProgramEnd{true, exit_code_, signal_, 0, StartStep::kRun, timed_out_};
  }

 private:
  Result<void> prepare() {
    for (const Program& program : asked_.programs) {
      Fd opened;
      if (!program.folder.empty()) {
        Result<Fd> folder = base::open_fd(program.folder, O_PATH | O_DIRECTORY);
        if (!folder) return std::move(folder).error();
        opened = *std::move(folder);
      }
      folders_.push_back(std::move(opened));
    }
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (const int number : kForwarded) sigaddset(&set, number);
    signals_.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) return Error::from_errno("signalfd", errno);
    insist_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
    // Time that the machine sleeps does not count: CLOCK_MONOTONIC stands still then.
    limit_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
    if (!insist_ || !limit_) return Error::from_errno("timerfd", errno);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
      return Error::from_errno("become a subreaper", errno);
    // We may have been started with SIGCHLD ignored, and then no exit code would ever arrive.
    struct sigaction normal {};
    normal.sa_handler = SIG_DFL;
    (void)sigaction(SIGCHLD, &normal, &old_child_action_);
    // A reader that closes our output must not end us before the program.
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    (void)sigaction(SIGPIPE, &ignore, &old_pipe_action_);
    (void)sigprocmask(SIG_BLOCK, &set, &old_mask_);
    if (asked_.session) return {};
    Result<Witness> witness = Witness::start();
    if (!witness) return std::move(witness).error();
    witness_.emplace(*std::move(witness));
    outsiders_.pids.push_back(witness_->pid());
    return {};
  }

  // Error 0: it runs.
  Result<StartFailure> start(std::size_t rank) {
    Result<base::Pipe> failure = base::make_pipe();
    if (!failure) return std::move(failure).error();
    const std::vector<char*> argv = base::pointers(asked_.programs[rank].argv);
    const std::vector<char*> environment = base::pointers(asked_.programs[rank].environment);
    if (Result<void> r = asked_.before_start(); !r) return std::move(r).error();
    const pid_t leader = fork();
    if (leader < 0) return Error::from_errno("fork", errno);
    if (leader == 0)
      execute(rank, argv.data(), const_cast<char**>(environment.data()), failure->write.get());
    failure->write.reset();
    StartFailure told;
    ssize_t got = 0;
    do {
      got = read(failure->read.get(), &told, sizeof told);
    } while (got < 0 && errno == EINTR);
    if (got != static_cast<ssize_t>(sizeof told)) {  // closed by exec: it runs
      leaders_.push_back(leader);
      ++running_;
      return StartFailure{};
    }
    (void)waitpid(leader, nullptr, 0);
    return told;
  }

  // A rank could not be started: the others must not run without it.
  void abandon() {
    ending_ = true;
    while (!offspring_is_gone(outsiders_)) {
      SignalToAll(SIGKILL).send(outsiders_);
      pollfd ready{signals_.get(), POLLIN, 0};
      (void)poll(&ready, 1, kLookAgainMs);
      signalfd_siginfo info{};
      while (read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
        continue;
      reap();
    }
  }

  // In the child: restores everything as it would be without us, then execs. Only async-signal-safe
  // calls except execvp's path search, which is fine in a process with one thread.
  [[noreturn]] void execute(std::size_t rank, char* const* argv, char** environment,
                            int failure_fd) {
    StartFailure failure;
    const auto failed = [&](StartStep step, int error) {
      if (failure.error == 0 && error != 0) failure = {error, step};
    };
    if (folders_[rank] && fchdir(folders_[rank].get()) != 0) failed(StartStep::kEnter, errno);
    for (const int door : asked_.doors)
      if (write(door, "0", 1) != 1) failed(StartStep::kJoin, errno);
    if (asked_.session) {
      failed(StartStep::kPrepare, detach(*asked_.session, rank == 0));
    } else {
      (void)sigaction(SIGCHLD, &old_child_action_, nullptr);
      (void)sigaction(SIGPIPE, &old_pipe_action_, nullptr);
      (void)sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
    }
    if (failure.error == 0) {
      environ = environment;
      (void)execvp(argv[0], argv);
      failed(StartStep::kRun, errno);
    }
    const ssize_t written = write(failure_fd, &failure, sizeof failure);
    _exit(written < 0 ? 125 : 127);
  }

  void begin_time() {
    if (!asked_.time_limit || ending_) return;
    const itimerspec when = timer_in(*asked_.time_limit);
    (void)timerfd_settime(limit_.get(), 0, &when, nullptr);
  }

  // The time limit stands still with the job.
  void hold_time() {
    const bool still = !ending_ && asked_.stands_still();
    if (still == held_.has_value() || ending_) return;
    itimerspec time{};
    if (still) {
      (void)timerfd_gettime(limit_.get(), &time);
      held_ = time;
      time = {};
    } else {
      time = *std::exchange(held_, std::nullopt);
    }
    (void)timerfd_settime(limit_.get(), 0, &time, nullptr);
  }

  Result<void> wait_once() {
    hold_time();
    std::vector<pollfd>& ready = ready_;
    ready = {
        {signals_.get(), POLLIN, 0}, {limit_.get(), POLLIN, 0}, {asked_.watch_fd(), POLLIN, 0}};
    if (asked_.session) asked_.session->listen(ready);
    const int tick_ms = asked_.tick ? asked_.tick_ms() : -1;
    const int got = poll(ready.data(), ready.size(), wait_ms(tick_ms));
    if (got < 0 && errno != EINTR) return Error::from_errno("wait for the program", errno);
    handle_signals();
    if (asked_.session && got > 0) asked_.session->heard(std::span(ready).subspan(3));
    if (ready[1].revents != 0) time_is_up();
    if (ready[2].revents != 0 && asked_.watched()) end_job();
    // Also if other events happen all the time.
    const seam::Nanoseconds now = seam::system_clock().monotonic();
    if (tick_ms >= 0 && now - last_tick_ >= std::chrono::milliseconds(tick_ms)) {
      last_tick_ = now;
      if (asked_.tick()) end_job();
    }
    return {};
  }

  // A child that is about to become a program of the outsiders does so without a signal.
  int wait_ms(int tick_ms) const {
    if (running_ > 0) return tick_ms;
    // Without outsiders only a look that had no descriptor is repeated.
    const int most = outsiders_.program.empty() ? kLookLaterMs : kLookAgainMs;
    return tick_ms < 0 ? most : std::min(tick_ms, most);
  }

  void handle_signals() {
    signalfd_siginfo info{};
    bool child_changed = false;
    // Bounded, so that the rest of the loop runs however fast signals arrive.
    for (int i = 0; i < kSignalsAtOnce; ++i) {
      if (read(signals_.get(), &info, sizeof info) != static_cast<ssize_t>(sizeof info)) break;
      const int number = static_cast<int>(info.ssi_signo);
      if (number == SIGCHLD) {
        child_changed = true;
        reap();
      } else if (asked_.session) {
        if (number == SIGTERM || number == SIGINT) end_job();
      } else if (info.ssi_code == SI_KERNEL && number != SIGHUP) {
        // The kernel sends a hangup to the session leader only, and that may be us (`ssh -t`).
        if (number == SIGINT) interrupted();  // the program already has it, from the terminal
      } else if (!witness_ || !witness_->group_got(number)) {
        forward(number);
      }
    }
    // Processes that dead ones have left behind are our children now.
    if (child_changed && sent_) sent_->send_to_orphans(outsiders_);
  }

  void reap() {
    int status = 0;
    pid_t pid = 0;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
      const bool leader = std::find(leaders_.begin(), leaders_.end(), pid) != leaders_.end();
      if (!leader) {
        if (!WIFSTOPPED(status)) descendant_ended(pid);
        continue;
      }
      if (WIFSTOPPED(status)) {
        // Only stops by the terminal: after a SIGSTOP from elsewhere, the sender would not know to
        // continue us.
        const int by = WSTOPSIG(status);
        if (!asked_.session && (by == SIGTSTP || by == SIGTTIN || by == SIGTTOU))
          (void)kill(getpid(), SIGSTOP);
        continue;
      }
      std::erase(leaders_, pid);
      leader_ended(status);
    }
  }

  void leader_ended(int status) {
    --running_;
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (exit_code_ != 0 || code == 0) return;
    exit_code_ = code;
    signal_ = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    // The ranks of one job wait for each other: without this one they would wait for ever.
    if (running_ > 0) end_job();
  }

  void descendant_ended(pid_t pid) {
    if (witness_ && pid == witness_->pid()) {
      witness_->was_reaped();
      witness_.reset();
    } else if (std::erase(outsiders_.pids, pid) > 0) {
      const pid_t successor = asked_.outsider_ended(pid);
      if (successor > 0) outsiders_.pids.push_back(successor);
    }
  }

  bool finished() const { return running_ == 0 && offspring_is_gone(outsiders_); }

  void forward(int number) {
    if (running_ == 0) {
      SignalToAll(number).send(outsiders_);
      return;
    }
    for (const pid_t leader : leaders_) {
      // `fg` continues the whole group: the program needs our signal only if it is still stopped.
      if (number != SIGCONT || is_stopped(leader)) (void)kill(leader, number);
    }
  }

  // Also to processes that are orphaned from now on.
  void send_term() { sent_.emplace(SIGTERM).send(outsiders_); }

  // Also processes that are forked from now on, until none is left: again when a child ends, and
  // every second.
  void kill_job() {
    ending_ = true;
    if (asked_.session) asked_.session->kill_all();
    sent_.emplace(SIGKILL).send(outsiders_);
    const itimerspec again = timer_in(std::chrono::seconds(1));
    (void)timerfd_settime(limit_.get(), 0, &again, nullptr);
  }

  // TERM now, KILL when the grace period is over.
  void end_job() {
    if (ending_) return;
    ending_ = true;
    send_term();
    std::chrono::milliseconds time =
        asked_.session ? asked_.session->grace : std::chrono::seconds(kGraceSeconds);
    if (asked_.stands_still()) time = std::min(time, kStillGrace);
    const itimerspec grace = timer_in(time);
    (void)timerfd_settime(limit_.get(), 0, &grace, nullptr);
  }

  void time_is_up() {
    std::uint64_t times = 0;
    if (read(limit_.get(), &times, sizeof times) < 0) return;
    if (ending_) {
      kill_job();
      return;
    }
    timed_out_ = true;
    end_job();
  }

  void interrupted() {
    itimerspec left{};
    (void)timerfd_gettime(insist_.get(), &left);
    const bool in_time = left.it_value.tv_sec != 0 || left.it_value.tv_nsec != 0;
    insisted_ = in_time ? insisted_ + 1 : 0;
    if (insisted_ == 1) send_term();
    if (insisted_ == 2) kill_job();
    itimerspec again{};
    again.it_value.tv_sec = kInsistSeconds;
    (void)timerfd_settime(insist_.get(), 0, &again, nullptr);
  }

  const Supervision& asked_;
  Outsiders outsiders_;
  std::optional<Witness> witness_;
  std::vector<Fd> folders_;
  std::vector<pollfd> ready_;
  seam::Nanoseconds last_tick_ = seam::system_clock().monotonic();
  Fd signals_;
  Fd insist_;
  Fd limit_;                        // the job's time limit, and then its grace period
  std::optional<itimerspec> held_;  // the rest of its time while it stands still
  sigset_t old_mask_{};
  struct sigaction old_child_action_ {};
  struct sigaction old_pipe_action_ {};
  std::vector<pid_t> leaders_;  // the programs that still run
  std::size_t running_ = 0;
  int exit_code_ = 0;
  int signal_ = 0;
  int insisted_ = 0;
  std::optional<SignalToAll> sent_;  // the last signal that every process was to get
  bool ending_ = false;
  bool timed_out_ = false;
};

}  // namespace

Result<ProgramEnd> supervise(const Supervision& supervision) {
  METE_ASSERT(!supervision.programs.empty() && !supervision.programs.front().argv.empty());
  return Supervisor(supervision).run();
}

}  // namespace mete::launch
