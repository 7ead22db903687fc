// SPDX-License-Identifier: Apache-2.0
// See spawn_daemon.h. Between fork and exec only what is safe in a copy of a process with threads:
// system calls, and no memory from the heap.
#include "net/spawn_daemon.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/process.h"
#include "net/ready_pipe.h"

namespace mete::net {

namespace {

constexpr int kReadyFd = 3;

struct Prepared {
  std::vector<char*> argv;
  std::vector<char*> envp;
  int null = -1;
  int log = -1;
  int ready = -1;
};

void reset_signals() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) (void)sigaction(number, &standard, nullptr);
  sigset_t none;
  sigemptyset(&none);
  (void)sigprocmask(SIG_SETMASK, &none, nullptr);
}

// A daemon outlives this shell, and its jobs inherit its settings: all processors of the machine,
// no lowered priority. Raising the priority needs a right that most users do not have: then it
// stays as it is.
void reset_priority() {
  unsigned long all[128];  // 8192 processors; the kernel ignores those that do not exist
  for (unsigned long& word : all) word = ~0ul;
  (void)syscall(SYS_sched_setaffinity, 0, sizeof all, all);
  const sched_param standard{};
  (void)sched_setscheduler(0, SCHED_OTHER, &standard);
  (void)setpriority(PRIO_PROCESS, 0, 0);
}

void say(int pipe, std::string_view text) { (void)!write(pipe, text.data(), text.size()); }

[[noreturn]] void become(const Prepared& prepared) {
  // First move the descriptors away from 0 to 3.
  const int null = fcntl(prepared.null, F_DUPFD, kReadyFd + 1);
  const int log = fcntl(prepared.log, F_DUPFD, kReadyFd + 1);
  const int ready = fcntl(prepared.ready, F_DUPFD, kReadyFd + 1);
  (void)dup2(null, STDIN_FILENO);
  (void)dup2(null, STDOUT_FILENO);
  (void)dup2(log, STDERR_FILENO);
  (void)dup2(ready, kReadyFd);
  (void)close_range(kReadyFd + 1, ~0u, 0);
  (void)umask(077);
  reset_signals();
  reset_priority();
  if (null < 0 || log < 0 || ready < 0 || chdir("/") != 0) {
    say(kReadyFd, "error io\nthe daemon could not be prepared\n\n\n");
    _exit(125);
  }
  (void)execve(prepared.argv[0], prepared.argv.data(), prepared.envp.data());
  const int error = errno;
  say(kReadyFd, error == ENOENT ? "error not_found\n" : "error io\n");
  say(kReadyFd, "the daemon's program cannot be executed\n");
  say(kReadyFd, prepared.argv[0]);
  say(kReadyFd, error == ENOENT   ? ": No such file\n\n"
                : error == EACCES ? ": Permission denied\n\n"
                                  : ": exec failed\n\n");
  _exit(127);
}

}  // namespace

Result<Fd> spawn_daemon(const SpawnDaemon& what) {
  Result<base::Pipe> pipe = base::make_pipe();
  if (!pipe) return std::move(pipe).error();
  const Result<Fd> null = base::open_fd("/dev/null", O_RDWR);
  if (!null) return null.error();
  std::vector<std::string> environment = what.environment;
  environment.push_back(std::string(kReadyVariable) + '=' + std::to_string(kReadyFd));
  const Prepared prepared{base::pointers(what.arguments), base::pointers(environment), null->get(),
                          what.log, pipe->write.get()};
  // With everything blocked no handler of ours runs in the child; it starts with a clean mask.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  (void)sigprocmask(SIG_SETMASK, &all, &before);
  const pid_t child = fork();
  const int error = errno;
  if (child == 0) {
    // The second fork: its parent is gone at once, and as it does not lead its session it can never
    // get a terminal.
    if (setsid() < 0) _exit(125);
    const pid_t daemon = fork();
    if (daemon != 0) _exit(daemon < 0 ? 125 : 0);
    become(prepared);
  }
  (void)sigprocmask(SIG_SETMASK, &before, nullptr);
  if (child < 0) return Error::from_errno("fork", error);
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) break;  // our children are reaped elsewhere: the status is unknown
  if (status != 0) return Error::io("the daemon could not be forked");
  return std::move(pipe->read);
}

}  // namespace mete::net
