// SPDX-License-Identifier: Apache-2.0
#include "node/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/fd.h"
#include "base/process.h"

namespace mete::node {
namespace {

constexpr std::size_t kMostOutput = std::size_t{64} << 10;
constexpr seam::Milliseconds kKillPatience{2000};

// The file actions and attributes of posix_spawn, freed in any case.
struct SpawnSetup {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  SpawnSetup(int output, int errors) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    // The child starts with no signal blocked or ignored, whatever our own settings are.
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
};

int milliseconds_until(seam::Nanoseconds deadline, seam::Clock& clock) {
  const auto left = std::chrono::ceil<seam::Milliseconds>(deadline - clock.monotonic());
  return static_cast<int>(std::clamp<long long>(left.count(), 0, 600000));
}

// Reads what is available; false at the end of the file.
bool drain(const Fd& fd, std::string& into) {
  std::array<char, 4096> buffer;
  const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  into.append(buffer.data(), std::min(static_cast<std::size_t>(got), kMostOutput - into.size()));
  return true;
}

// Waits until the process has ended, without taking its status; false after the deadline.
bool wait_for_end(pid_t pid, seam::Nanoseconds deadline, seam::Clock& clock) {
  const Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  for (;;) {
    siginfo_t info{};
    if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == pid)
      return true;
    const int left = milliseconds_until(deadline, clock);
    if (left == 0) return false;
    pollfd item{pidfd.get(), POLLIN, 0};
    // Without pidfds (before Linux 5.3) there is nothing to poll, so check often.
    (void)poll(&item, pidfd ? 1 : 0, pidfd ? left : std::min(left, 10));
  }
}

}  // namespace

Result<ChildAnswer> run_child(const ChildRequest& request, seam::Clock& clock) {
  Result<base::Pipe> output = base::make_pipe();
  if (!output) return std::move(output).error();
  Result<base::Pipe> errors = base::make_pipe();
  if (!errors) return std::move(errors).error();
  std::vector<std::string> arguments = request.arguments, environment = request.environment;
  arguments.insert(arguments.begin(), request.program);
  SpawnSetup setup(output->write.get(), errors->write.get());
  pid_t pid = -1;
  const int failed =
      posix_spawn(&pid, request.program.c_str(), &setup.actions, &setup.attributes,
                  base::pointers(arguments).data(), base::pointers(environment).data());
  if (failed != 0) return Error::from_errno("start " + request.program, failed);
  output->write.reset();
  errors->write.reset();

  const seam::Nanoseconds deadline = clock.monotonic() + request.timeout;
  ChildAnswer answer;
  bool open_output = true, open_errors = true, in_time = true;
  while (in_time && (open_output || open_errors)) {
    // A descriptor that is at its end is not watched any more: poll ignores negative ones.
    std::array<pollfd, 2> items{pollfd{open_output ? output->read.get() : -1, POLLIN, 0},
                                pollfd{open_errors ? errors->read.get() : -1, POLLIN, 0}};
    const int left = milliseconds_until(deadline, clock);
    in_time = left > 0;
    if (!in_time || poll(items.data(), items.size(), left) <= 0) continue;
    if (items[0].revents != 0) open_output = drain(output->read, answer.output);
    if (items[1].revents != 0) open_errors = drain(errors->read, answer.errors);
  }
  in_time = in_time && wait_for_end(pid, deadline, clock);
  if (!in_time) {
    kill(pid, SIGKILL);
    if (wait_for_end(pid, clock.monotonic() + kKillPatience, clock)) waitpid(pid, nullptr, 0);
    return Error::busy(request.program + " did not answer within " +
                       std::to_string(request.timeout.count()) + " ms")
        .with_evidence(answer.errors);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  answer.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return answer;
}

}  // namespace mete::node
