// SPDX-License-Identifier: Apache-2.0
// See kernel_companion.h.
#include "cli/kernel_companion.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/process.h"
#include "base/text.h"
#include "seam/clock.h"
#include "wire/wait_text.h"

namespace mete::cli {

namespace {

constexpr int kHandOverMs = 10'000;
constexpr std::size_t kMostText = 2'000;  // a line is written at once, or not at all

// One line: the kind, and a text in which nothing ends the line.
std::string line_of(char kind, const std::string& text) {
  std::string line(1, kind);
  line += ' ';
  line += base::printable(text.substr(0, kMostText));
  line += '\n';
  return line;
}

void watch_for(const Fd& events, int descriptor) {
  epoll_event event{};
  event.events = EPOLLIN;
  (void)epoll_ctl(events.get(), EPOLL_CTL_ADD, descriptor, &event);
}

std::string in_one_line(const Error& error) {
  std::string text = error.message;
  if (!error.evidence.empty()) text += ": " + error.evidence;
  if (!error.hint.empty()) text += " (" + error.hint + ")";
  return text;
}

}  // namespace

KernelCompanion::KernelCompanion(Place place, const Output& output)
    : place_(std::move(place)), output_(output), events_(epoll_create1(EPOLL_CLOEXEC)) {
  if (!base::variable("JPY_PARENT_PID").empty()) {
    parent_.reset(static_cast<int>(syscall(SYS_pidfd_open, getppid(), 0)));
    if (parent_) watch_for(events_, parent_.get());
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
  kernel_end_.reset(ends[0]);
  kernel_.reset(ends[1]);
  // For the kernel it is an ordinary descriptor that blocks.
  (void)fcntl(ends[0], F_SETFD, 0);
  (void)fcntl(ends[0], F_SETFL, 0);
}

KernelCompanion::~KernelCompanion() {
  input_.reset();
  if (pid_ > 0) end_within(kHandOverMs);
}

void KernelCompanion::begin(int signals) {
  signals_.reset(fcntl(signals, F_DUPFD_CLOEXEC, 0));
  watch_for(events_, signals_.get());
}

Result<void> KernelCompanion::start() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return Error::from_errno("make a pipe", errno);
  const Fd end(ends[0]);
  input_.reset(ends[1]);
  (void)fcntl(end.get(), F_SETFL, 0);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, end.get(), 0);
  if (kernel_end_) posix_spawn_file_actions_addclose(&actions, kernel_end_.get());
  // Our own signals are blocked while we wait.
  sigset_t none, pipe;
  sigemptyset(&none);
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &pipe);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const std::vector<std::string> words{place_.python, place_.script, "wait",
                                       place_.connection_file};
  const std::vector<std::string> environment = base::own_environment();
  const int error = posix_spawn(&pid_, place_.python.c_str(), &actions, &attributes,
                                base::pointers(words).data(), base::pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    pid_ = -1;
    input_.reset();
    return Error::from_errno("run " + base::quote(place_.python), error);
  }
  process_.reset(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (process_) watch_for(events_, process_.get());
  return {};
}

void KernelCompanion::tell(char kind, const std::string& text) {
  if (pid_ < 0 && !cannot_start_) {
    if (Result<void> r = start(); !r) {
      cannot_start_ = true;
      output_.say("the notebook cannot be told what its kernel waits for: " + r.error().message);
    }
  }
  const std::string line = line_of(kind, text);
  // A stand-in that does not read is not waited for: the next line says more anyway.
  if (input_) (void)!write(input_.get(), line.data(), line.size());
}

void KernelCompanion::waits(const std::string& what) { tell('w', what); }

bool KernelCompanion::takes(int number) {
  if (number != SIGINT) return false;
  if (pid_ > 0) tell('i', "");
  return true;
}

bool KernelCompanion::is_over() {
  int status = 0;
  if (pid_ > 0 && waitpid(pid_, &status, WNOHANG) == pid_) reaped(status);
  pollfd parent{parent_.get(), POLLIN, 0};
  over_ = over_ || (parent_ && poll(&parent, 1, 0) == 1);
  return over_;
}

void KernelCompanion::reaped(int status) {
  over_ = over_ || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
  pid_ = -1;
  input_.reset();
  process_.reset();
  if (!over_ && !std::exchange(cannot_start_, true))
    output_.say("the notebook cannot be told any more what its kernel waits for");
}

void KernelCompanion::end_within(int milliseconds) {
  pollfd ready{process_.get(), POLLIN, 0};
  if (!process_ || poll(&ready, 1, milliseconds) != 1) (void)kill(pid_, SIGKILL);
  (void)waitpid(pid_, nullptr, 0);
  pid_ = -1;
  input_.reset();
  process_.reset();
}

void KernelCompanion::granted() {
  if (pid_ < 0) return;
  tell('g', "");
  end_within(kHandOverMs);
}

void KernelCompanion::failed(const Error& error) {
  tell('f', in_one_line(error));
  while (pid_ > 0 && !is_over()) {
    pollfd ready{events_.get(), POLLIN, 0};
    (void)poll(&ready, 1, -1);
    pollfd signal{signals_.get(), POLLIN, 0};
    if (poll(&signal, 1, 0) == 1) {
      // Blocked, and not taken yet: an interrupt is for cells, any other signal ends us.
      sigset_t interrupt;
      sigemptyset(&interrupt);
      sigaddset(&interrupt, SIGINT);
      const timespec now{};
      if (sigtimedwait(&interrupt, nullptr, &now) != SIGINT) return;
    }
  }
}

void KernelCompanion::hears(const wire::JobView& view) {
  const core::Job& job = view.job;
  const bool waits = job.state == core::JobState::kParked && job.park && job.park->wants_back;
  if (!kernel_ || (!waits && !told_parked_)) return;
  const bool back = job.state == core::JobState::kRunning;
  if (!waits && !back) return;
  std::string text = "room to come back";
  if (waits && view.wait) text = wire::wait_text(*view.wait, seam::system_clock().wall());
  const std::string line = back ? line_of('b', "") : line_of('w', text);
  (void)!write(kernel_.get(), line.data(), line.size());
  told_parked_ = waits;
}

}  // namespace mete::cli
