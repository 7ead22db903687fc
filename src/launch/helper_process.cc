// SPDX-License-Identifier: Apache-2.0
// See helper_process.h.
#include "launch/helper_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace mete::launch {

namespace {

constexpr int kPatienceMs = 1000;  // for a killed child to be gone

void block_everything(sigset_t* old) {
  sigset_t all;
  sigfillset(&all);
  (void)sigprocmask(SIG_SETMASK, &all, old);
}

[[noreturn]] void run_child(const char* name, const std::function<void(HelperProcess::Pipes)>& body,
                            pid_t parent, HelperProcess::Pipes pipes) {
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);  // the parent died before PR_SET_PDEATHSIG was set
  (void)prctl(PR_SET_NAME, name);
  // The job's terminal and pipes stay the job's: a reader must see their end when the job ends.
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd <= 2 && null >= 0; ++fd) (void)dup2(null, fd);
  body(pipes);
  _exit(0);
}

}  // namespace

Result<HelperProcess> HelperProcess::start(const char* name,
                                           const std::function<void(Pipes)>& body) {
  Result<base::Pipe> alive = base::make_pipe();
  if (!alive) return std::move(alive).error();
  Result<base::Pipe> reply = base::make_pipe();
  if (!reply) return std::move(reply).error();
  sigset_t old;
  block_everything(&old);  // the child inherits the mask, so no signal finds it unready
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    alive->write.reset();
    reply->read.reset();
    run_child(name, body, parent, {alive->read.get(), reply->write.get()});
  }
  const int error = errno;
  (void)sigprocmask(SIG_SETMASK, &old, nullptr);
  if (pid < 0) return Error::from_errno("fork", error);
  HelperProcess helper;
  helper.pid_ = pid;
  helper.alive_ = std::move(alive->write);
  helper.reply_ = std::move(reply->read);
  return helper;
}

HelperProcess::HelperProcess(HelperProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      alive_(std::move(other.alive_)),
      reply_(std::move(other.reply_)) {}

HelperProcess::~HelperProcess() {
  if (pid_ < 0) return;
  alive_.reset();
  // A child that hangs in the driver would not notice the pipe; SIGKILL also ends most hangs. A
  // child in an uninterruptible sleep is left to init rather than waited for.
  (void)kill(pid_, SIGKILL);
  // By number: glibc 2.36 declares pidfd_open() as a C++ function.
  const Fd end(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  pollfd ended{end.get(), POLLIN, 0};
  if (end && poll(&ended, 1, kPatienceMs) != 0) (void)waitpid(pid_, nullptr, WNOHANG);
}

bool HelperProcess::ask() {
  char byte = 0;
  // MSG_NOSIGNAL is for sockets only: a dead child must not kill us by SIGPIPE.
  struct sigaction ignore {};
  struct sigaction old {};
  ignore.sa_handler = SIG_IGN;
  (void)sigaction(SIGPIPE, &ignore, &old);
  const ssize_t sent = write(alive_.get(), &byte, 1);
  (void)sigaction(SIGPIPE, &old, nullptr);
  ssize_t got = 0;
  do {
    got = sent == 1 ? read(reply_.get(), &byte, 1) : 0;
  } while (got < 0 && errno == EINTR);
  return got == 1;
}

Result<std::string> HelperProcess::collect(int limit_ms) {
  constexpr std::size_t kMax = 1 << 20;
  std::string text;
  for (;;) {
    pollfd ready{reply_.get(), POLLIN, 0};
    const int count = poll(&ready, 1, limit_ms);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Error::from_errno("wait for the helper process", errno);
    if (count == 0) return Error::busy("no answer within " + std::to_string(limit_ms) + " ms");
    char buffer[4096];
    const ssize_t got = read(reply_.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::from_errno("read from the helper process", errno);
    if (got == 0) return Error::io("the helper process died without an answer");
    text.append(buffer, static_cast<std::size_t>(got));
    if (const std::size_t end = text.find('\0'); end != std::string::npos)
      return text.substr(0, end);
    if (text.size() > kMax) return Error::io("the helper process wrote more than 1 MiB");
  }
}

}  // namespace mete::launch
