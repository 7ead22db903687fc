// SPDX-License-Identifier: Apache-2.0
// See life_lock.h.
#include "net/life_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/file.h"

namespace mete::net {

namespace {

constexpr int kTries = 8;  // for a lock file that another process keeps removing

// flock() cannot wait with a limit. A child waits instead: the lock belongs to the open file, which
// is shared with it, so the child takes it for us; and a child can be waited for with a limit, and
// killed.
Result<Waited> wait_in_child(int lock, const Deadline& deadline, int interrupt) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return Error::from_errno("fork", errno);
  if (child == 0) {
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, nullptr);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    // The child must not keep anything else of ours open, another lock least of all.
    if (lock > 0) (void)close_range(0, static_cast<unsigned>(lock) - 1, 0);
    (void)close_range(static_cast<unsigned>(lock) + 1, ~0u, 0);
    while (flock(lock, LOCK_EX) != 0)
      if (errno != EINTR) _exit(1);
    _exit(0);
  }
  const Fd handle(static_cast<int>(syscall(SYS_pidfd_open, child, 0)));
  Result<Waited> waited = handle ? wait_for(handle.get(), POLLIN, interrupt, deadline)
                                 : Error::from_errno("pidfd_open", errno);
  (void)kill(child, SIGKILL);
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) continue;
  return waited;
}

}  // namespace

bool lock_is_in_place(int lock, const std::string& path) {
  const std::optional<base::FileId> held = base::file_id(lock);
  return held && held == base::file_id(path);
}

Result<Fd> take_lock(const std::string& path, const Deadline& deadline, int interrupt) {
  for (int i = 0; i < kTries; ++i) {
    Result<Fd> lock = base::open_fd(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    if (!lock) return lock;
    if (flock(lock->get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return Error::from_errno("lock " + path, errno);
      if (deadline.poll_timeout() == 0) return Error::busy(path + " is held by another process");
      const Result<Waited> waited = wait_in_child(lock->get(), deadline, interrupt);
      if (!waited) return waited.error();
      if (*waited == Waited::kInterrupted)
        return Error::io("interrupted while waiting for " + path);
      // The child may have ended with or without the lock.
      if (flock(lock->get(), LOCK_EX | LOCK_NB) != 0) {
        if (*waited == Waited::kTimeout) return Error::busy(path + " is held by another process");
        continue;
      }
    }
    if (lock_is_in_place(lock->get(), path)) return lock;
  }
  return Error::io("the lock " + path + " does not stay in its place");
}

}  // namespace mete::net
