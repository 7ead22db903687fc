// SPDX-License-Identifier: Apache-2.0
// See fd.h.
#include "base/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

namespace mete::base {

void Fd::reset(int number) {
  METE_ASSERT(number < 0 || number != number_);
  const int old = std::exchange(number_, number);
  if (old < 0) return;
  const int saved = errno;
  // On Linux the descriptor is gone even after EINTR: closing it again could close another one.
  (void)close(old);
  errno = saved;
}

Result<Fd> open_fd(const std::string& path, int flags, mode_t mode) {
  int number = -1;
  do {
    number = open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (number < 0 && errno == EINTR);
  if (number < 0) return Error::from_errno("open " + path, errno);
  return Fd(number);
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd ready{fd, POLLOUT, 0};
      (void)poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

namespace {

// Calls `step` with the bytes done so far, until all are done.
template <class Step>
bool repeat(std::size_t bytes, Step step) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t count = step(done);
    if (count > 0) {
      done += static_cast<std::size_t>(count);
    } else if (count == 0 || errno != EINTR) {
      if (count == 0) errno = EIO;
      return false;
    }
  }
  return true;
}

}  // namespace

bool write_at(int fd, std::string_view bytes, std::uint64_t offset) {
  return repeat(bytes.size(), [&](std::size_t done) {
    return pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
  });
}

bool read_at(int fd, void* into, std::size_t bytes, std::uint64_t offset) {
  return repeat(bytes, [&](std::size_t done) {
    return pread(fd, static_cast<char*>(into) + done, bytes - done,
                 static_cast<off_t>(offset + done));
  });
}

Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Error::from_errno("pipe", errno);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

void fill_standard_descriptors() {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number)
    if (fcntl(number, F_GETFD) < 0 && errno == EBADF)  // gets the lowest free number: this one
      (void)!open("/dev/null", (number == STDOUT_FILENO ? O_RDONLY : O_RDWR) | O_CLOEXEC);
}

void outlive_file_size_limit() {
  // Not SIG_IGN, which would be inherited: exec resets a handler.
  struct sigaction action {};
  if (sigaction(SIGXFSZ, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;
  action = {};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  (void)sigaction(SIGXFSZ, &action, nullptr);
}

}  // namespace mete::base
