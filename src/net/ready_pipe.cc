// SPDX-License-Identifier: Apache-2.0
// See ready_pipe.h.
#include "net/ready_pipe.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/text.h"

namespace mete::net {

namespace {

constexpr ErrorCode kCodes[] = {
    ErrorCode::kInvalid, ErrorCode::kNotFound,  ErrorCode::kDenied,
    ErrorCode::kBusy,    ErrorCode::kExhausted, ErrorCode::kInfeasible,
    ErrorCode::kIo,      ErrorCode::kCorrupt,   ErrorCode::kUnsupported};

std::string one_line(std::string_view text) {
  std::string line(text.substr(0, kMaxReadyBytes / 4));
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line + '\n';
}

}  // namespace

ReadyPipe ReadyPipe::from_environment() {
  ReadyPipe ready;
  if (const char* path = std::getenv("NOTIFY_SOCKET")) ready.systemd_ = path;
  (void)unsetenv("NOTIFY_SOCKET");
  const char* text = std::getenv(kReadyVariable);
  if (text == nullptr) return ready;
  const Result<std::uint64_t> number = base::parse_uint(text);
  (void)unsetenv(kReadyVariable);
  struct stat info {};
  // Only a pipe is accepted: a stale variable must not make us write into another file.
  if (!number || *number <= STDERR_FILENO || *number > INT_MAX ||
      fstat(static_cast<int>(*number), &info) != 0 || !S_ISFIFO(info.st_mode))
    return ready;
  ready.pipe_.reset(static_cast<int>(*number));
  (void)fcntl(ready.pipe_.get(), F_SETFD, FD_CLOEXEC);
  return ready;
}

void ReadyPipe::notify_ready() {
  tell("ready\n");
  tell_systemd("READY=1");
}

void ReadyPipe::notify_failed(const Error& error) {
  tell_systemd("STATUS=" + one_line(error.message));  // `systemctl status` shows it
  tell("error " + std::string(base::to_string(error.code)) + '\n' + one_line(error.message) +
       one_line(error.evidence) + one_line(error.hint));
}

void ReadyPipe::tell(std::string_view message) {
  if (!pipe_) return;
  // A starter that is gone must not kill us with SIGPIPE; its disposition is restored afterwards.
  // At most 4 KiB go into an empty pipe at once, and whole.
  struct sigaction ignore {};
  struct sigaction before {};
  ignore.sa_handler = SIG_IGN;
  (void)sigaction(SIGPIPE, &ignore, &before);
  while (write(pipe_.get(), message.data(), message.size()) < 0 && errno == EINTR) continue;
  (void)sigaction(SIGPIPE, &before, nullptr);
  pipe_.reset();
}

// One datagram, as sd_notify(3) describes it. A manager that is gone is no trouble of ours.
void ReadyPipe::tell_systemd(const std::string& message) {
  sockaddr_un address{};
  if (systemd_.empty() || systemd_.size() >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::copy(systemd_.begin(), systemd_.end(), address.sun_path);
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + systemd_.size());
  const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  (void)sendto(socket.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
               reinterpret_cast<const sockaddr*>(&address), length);
}

Result<void> parse_ready(std::string_view message) {
  if (message == "ready\n") return {};
  const std::vector<std::string_view> lines = base::split(message, '\n');
  if (lines.size() == 5 && lines[0].starts_with("error ")) {
    for (const ErrorCode code : kCodes)
      if (lines[0].substr(6) == base::to_string(code))
        return Error{code, std::string(lines[1]), std::string(lines[2]), std::string(lines[3])};
  }
  if (message.empty()) return Error::io("the daemon ended before it listened");
  return Error::io("the daemon sent an invalid message instead of \"ready\"")
      .with_evidence(base::quote(message));
}

}  // namespace mete::net
