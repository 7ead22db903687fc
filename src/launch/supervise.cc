// SPDX-License-Identifier: Apache-2.0
// See supervise.h. One thread, one poll loop over a signalfd: no handler ever runs, so nothing here
// is interrupted.
#include "launch/supervise.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/fd.h"
#include "launch/process_tree.h"
#include "launch/witness.h"

namespace mete::launch {

namespace {

constexpr int kForwarded[] = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                              SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP};
constexpr int kInsistSeconds = 1;  // a second Ctrl-C within this time means it

std::vector<char*> c_strings(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

class Supervisor {
 public:
  Supervisor(const Program& program, const Outsiders& outsiders,
             const OutsiderEnded& outsider_ended)
      : program_(program), outsiders_(outsiders), outsider_ended_(outsider_ended) {}
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  Result<Ended> run() {
    if (Result<void> r = prepare(); !r) return std::move(r).error();
    const Result<int> start_error = start();
    if (!start_error) return start_error.error();
    if (*start_error != 0) return Ended{false, *start_error == ENOENT ? 127 : 126, *start_error};
    while (!finished()) {
      pollfd ready{signals_.get(), POLLIN, 0};
      if (poll(&ready, 1, -1) < 0 && errno != EINTR)
        return Error::from_errno("wait for the program", errno);
      handle_signals();
    }
    return Ended{true, exit_code_, 0};
  }

 private:
  Result<void> prepare() {
    if (!program_.folder.empty()) {
      Result<Fd> folder = base::open_fd(program_.folder, O_PATH | O_DIRECTORY);
      if (!folder) return std::move(folder).error();
      folder_ = *std::move(folder);
    }
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (const int number : kForwarded) sigaddset(&set, number);
    signals_.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) return Error::from_errno("signalfd", errno);
    insist_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
    if (!insist_) return Error::from_errno("timerfd", errno);
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
      return Error::from_errno("become a subreaper", errno);
    // Somebody may have started us with SIGCHLD ignored, and then no exit code would ever arrive.
    struct sigaction normal {};
    normal.sa_handler = SIG_DFL;
    (void)sigaction(SIGCHLD, &normal, &old_child_action_);
    (void)sigprocmask(SIG_BLOCK, &set, &old_mask_);
    Result<Witness> witness = Witness::start();
    if (!witness) return std::move(witness).error();
    witness_.emplace(*std::move(witness));
    outsiders_.pids.push_back(witness_->pid());
    return {};
  }

  // Returns 0, or the errno of a program that could not be executed.
  Result<int> start() {
    Result<base::Pipe> failure = base::make_pipe();
    if (!failure) return std::move(failure).error();
    const std::vector<char*> argv = c_strings(program_.argv);
    const std::vector<char*> environment = c_strings(program_.environment);
    leader_ = fork();
    if (leader_ < 0) return Error::from_errno("fork", errno);
    if (leader_ == 0)
      execute(argv.data(), const_cast<char**>(environment.data()), failure->write.get());
    failure->write.reset();
    int error = 0;
    ssize_t got = 0;
    do {
      got = read(failure->read.get(), &error, sizeof error);
    } while (got < 0 && errno == EINTR);
    if (got != static_cast<ssize_t>(sizeof error)) return 0;  // closed by exec: it runs
    (void)waitpid(leader_, nullptr, 0);
    return error;
  }

  // In the child: everything as it would be without us, then exec. Only async-signal-safe calls but
  // for execvp's path search, which is fine in a process that has one thread.
  [[noreturn]] void execute(char* const* argv, char** environment, int failure_fd) {
    int error = 0;
    if (folder_ && fchdir(folder_.get()) != 0) error = errno;
    (void)sigaction(SIGCHLD, &old_child_action_, nullptr);
    (void)sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
    if (error == 0) {
      environ = environment;
      (void)execvp(argv[0], argv);
      error = errno;
    }
    const ssize_t written = write(failure_fd, &error, sizeof error);
    _exit(written < 0 ? 125 : 127);
  }

  void handle_signals() {
    signalfd_siginfo info{};
    while (read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const int number = static_cast<int>(info.ssi_signo);
      if (number == SIGCHLD) {
        reap();
      } else if (info.ssi_code == SI_KERNEL) {
        if (number == SIGINT) interrupted();  // the program already has it, from the terminal
      } else if (!witness_ || !witness_->group_got(number)) {
        forward(number);
      }
    }
  }

  void reap() {
    int status = 0;
    pid_t pid = 0;
    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
      if (pid != leader_) {
        if (!WIFSTOPPED(status)) descendant_ended(pid);
        continue;
      }
      if (WIFSTOPPED(status)) {
        // Only what the terminal means: after a SIGSTOP by somebody else, nobody would know to
        // continue us.
        const int by = WSTOPSIG(status);
        if (by == SIGTSTP || by == SIGTTIN || by == SIGTTOU) (void)kill(getpid(), SIGSTOP);
        continue;
      }
      exit_code_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      leader_ended_ = true;
    }
  }

  void descendant_ended(pid_t pid) {
    if (witness_ && pid == witness_->pid()) {
      witness_->was_reaped();
      witness_.reset();
    } else if (std::erase(outsiders_.pids, pid) > 0) {
      const pid_t successor = outsider_ended_(pid);
      if (successor > 0) outsiders_.pids.push_back(successor);
    }
  }

  bool finished() const { return leader_ended_ && descendants(getpid(), outsiders_).empty(); }

  void forward(int number) {
    if (leader_ended_) {
      signal_all(number);
    } else if (number != SIGCONT || is_stopped(leader_)) {
      // `fg` continues the whole group: the program needs ours only if it still stands.
      (void)kill(leader_, number);
    }
  }

  void signal_all(int number) {
    for (const pid_t pid : descendants(getpid(), outsiders_)) (void)kill(pid, number);
  }

  void interrupted() {
    itimerspec left{};
    (void)timerfd_gettime(insist_.get(), &left);
    const bool in_time = left.it_value.tv_sec != 0 || left.it_value.tv_nsec != 0;
    insisted_ = in_time ? insisted_ + 1 : 0;
    if (insisted_ == 1) signal_all(SIGTERM);
    if (insisted_ >= 2) signal_all(SIGKILL);
    itimerspec again{};
    again.it_value.tv_sec = kInsistSeconds;
    (void)timerfd_settime(insist_.get(), 0, &again, nullptr);
  }

  const Program& program_;
  Outsiders outsiders_;
  const OutsiderEnded& outsider_ended_;
  std::optional<Witness> witness_;
  Fd folder_;
  Fd signals_;
  Fd insist_;
  sigset_t old_mask_{};
  struct sigaction old_child_action_ {};
  pid_t leader_ = -1;
  bool leader_ended_ = false;
  int exit_code_ = 0;
  int insisted_ = 0;
};

}  // namespace

Result<Ended> run_program(const Program& program, const Outsiders& outsiders,
                          const OutsiderEnded& outsider_ended) {
  METE_ASSERT(!program.argv.empty());
  return Supervisor(program, outsiders, outsider_ended).run();
}

}  // namespace mete::launch
