// SPDX-License-Identifier: Apache-2.0
// Unix stream sockets, and waiting on descriptors with a deadline. Blocking; no Boost.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <chrono>
#include <optional>
#include <string>

#include "base/fd.h"
#include "net/http.h"

namespace mete::net {

using Milliseconds = std::chrono::milliseconds;

// A moment of the monotonic clock; without a value it never passes.
class Deadline {
 public:
  Deadline() = default;  // never
  static Deadline in(std::optional<Milliseconds> time);
  // For poll(2): -1 never, 0 over, else what is left, rounded up.
  int poll_timeout() const;

 private:
  std::optional<std::chrono::nanoseconds> at_;
};

enum class Waited { kReady, kTimeout, kInterrupted };

// Until `descriptor` shows `events` (or a hang-up), `interrupt` (-1: none) is readable, or time is
// over. Signals do not end it. A ready descriptor takes precedence over an interrupt.
Result<Waited> wait_for(int descriptor, short events, int interrupt, const Deadline& deadline);

// The address of a socket file. invalid when the path is relative, empty, or too long for the
// kernel (107 bytes), with METE_SOCKET as the hint.
Result<sockaddr_un> unix_address(const std::string& path);

// not_found: no such file. busy: no process listens there. denied: not for this user. io: anything
// else, also when it takes longer than `timeout` (a listener that does not accept). The socket is
// non-blocking.
Result<Fd> connect_unix(const std::string& path, Milliseconds timeout);

// The process that connected or, for a client, that listens.
Result<Peer> peer_of(int socket);

}  // namespace mete::net
