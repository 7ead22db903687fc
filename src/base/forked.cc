// SPDX-License-Identifier: Apache-2.0
// See forked.h.
#include "base/forked.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace mete::base {

namespace {

// Descriptors are closed by number, so that none is forgotten. Locks that the parent holds on them
// stay the parent's.
[[noreturn]] void become_child(const char* name, const std::function<void(int)>& body, int socket,
                               pid_t parent) {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);  // the parent died before PR_SET_PDEATHSIG
  (void)prctl(PR_SET_NAME, name);
  constexpr int kSocket = 3;
  if (socket != kSocket && dup3(socket, kSocket, O_CLOEXEC) < 0) _exit(1);
  (void)syscall(SYS_close_range, kSocket + 1, ~0U, 0);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= 2 && null >= 0; ++fd) (void)dup2(null, fd);
  if (null > kSocket) (void)close(null);
  body(kSocket);
  _exit(0);
}

}  // namespace

Result<Forked> fork_around_socket(const char* name, const std::function<void(int socket)>& body) {
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.data()) != 0)
    return Error::from_errno("socketpair", errno);
  Forked forked;
  forked.socket.reset(pair[0]);
  const Fd theirs(pair[1]);
  sigset_t all, old;
  sigfillset(&all);
  (void)sigprocmask(SIG_SETMASK, &all, &old);  // the child inherits the mask
  const pid_t parent = getpid();
  forked.pid = fork();
  if (forked.pid == 0) become_child(name, body, theirs.get(), parent);
  const int error = errno;
  (void)sigprocmask(SIG_SETMASK, &old, nullptr);
  if (forked.pid < 0) return Error::from_errno("fork", error);
  return forked;
}

}  // namespace mete::base
