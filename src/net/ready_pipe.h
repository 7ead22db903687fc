// SPDX-License-Identifier: Apache-2.0
// How a daemon that was just started reports to its starter that it listens, or why it does not:
// one message over an inherited pipe, whose number is in METE_READY_FD. The message is "ready\n",
// or "error CODE\n" and the message, the evidence and the hint, a line each, at most 4 KiB in all.
// The end of the pipe without a message means that the daemon died. A daemon that systemd started
// (NOTIFY_SOCKET, Type=notify) reports to systemd as well.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.h"

namespace mete::net {

inline constexpr const char* kReadyVariable = "METE_READY_FD";

// The daemon's end. Does nothing if no starter waits.
class ReadyPipe {
 public:
  // Takes the descriptor (and makes it close-on-exec) and unsets both variables: jobs must not see
  // them.
  static ReadyPipe from_environment();

  ReadyPipe() = default;
  explicit ReadyPipe(Fd pipe) : pipe_(std::move(pipe)) {}

  // One of them, once; the pipe is then closed.
  void notify_ready();
  void notify_failed(const Error& error);

 private:
  void tell(std::string_view message);
  void tell_systemd(const std::string& message);
  Fd pipe_;
  std::string systemd_;  // the path of its socket; '@' begins an abstract one; "": none
};

// The starter's end: parses the message. io when there is none.
Result<void> parse_ready(std::string_view message);
inline constexpr std::size_t kMaxReadyBytes = 4096;

}  // namespace mete::net
