// SPDX-License-Identifier: Apache-2.0
// See unix_socket.h.
#include "net/unix_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>

namespace mete::net {

namespace {

std::chrono::nanoseconds monotonic() {
  timespec now{};
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

Error cannot_connect(const std::string& path, int error) {
  const std::string what = "connect to " + path;
  if (error == ECONNREFUSED) return Error::busy(what + ": no process listens there");
  if (error == ENOTDIR) return Error::not_found(what + ": its folder is not one");
  if (error == ENOTSOCK) return Error::corrupt(what + ": it is not a socket");
  return Error::from_errno(what, error);
}

}  // namespace

Deadline Deadline::in(std::optional<Milliseconds> time) {
  Deadline deadline;
  if (time) deadline.at_ = monotonic() + *time;
  return deadline;
}

int Deadline::poll_timeout() const {
  if (!at_) return -1;
  const auto left = std::chrono::ceil<Milliseconds>(*at_ - monotonic()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, INT_MAX));
}

Result<Waited> wait_for(int descriptor, short events, int interrupt, const Deadline& deadline) {
  pollfd fds[2] = {{descriptor, events, 0}, {interrupt, POLLIN, 0}};  // -1 is ignored
  for (;;) {
    const int timeout = deadline.poll_timeout();
    const int ready = poll(fds, 2, timeout);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return Error::from_errno("poll", errno);
    if (fds[0].revents != 0) return Waited::kReady;
    if (fds[1].revents != 0) return Waited::kInterrupted;
    if (timeout >= 0 && deadline.poll_timeout() == 0) return Waited::kTimeout;
  }
}

Result<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.front() != '/')
    return Error::invalid("a socket needs an absolute path, not '" + path + "'")
        .with_hint("set METE_SOCKET to an absolute path");
  if (path.size() >= sizeof address.sun_path)
    return Error::invalid("the path of the socket is too long")
        .with_evidence(path + " has " + std::to_string(path.size()) + " bytes; the system allows " +
                       std::to_string(sizeof address.sun_path - 1))
        .with_hint("set METE_SOCKET to a shorter path, in a folder of your own");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Result<Fd> connect_unix(const std::string& path, Milliseconds timeout) {
  const Result<sockaddr_un> address = unix_address(path);
  if (!address) return address.error();
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // Not busy, which would mean that no daemon listens: this process cannot connect.
  if (!socket) return Error::io(Error::from_errno("make a socket", errno).message);
  // A connect() waits only while the listener's queue is full; the send timeout bounds that.
  const Deadline deadline = Deadline::in(timeout);
  for (;;) {
    const int left = std::max(deadline.poll_timeout(), 1);  // 0 would mean for ever
    const timeval limit{left / 1000, left % 1000 * 1000L};
    (void)setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0)
      break;
    if (errno == EINTR && deadline.poll_timeout() != 0) continue;
    if (errno == EINTR || errno == EAGAIN)
      return Error::io("connect to " + path + ": it does not answer")
          .with_evidence("its queue of waiting clients is full");
    return cannot_connect(path, errno);
  }
  if (fcntl(socket.get(), F_SETFL, O_NONBLOCK) != 0)
    return Error::from_errno("prepare a socket", errno);
  return socket;
}

Result<Peer> peer_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
    return Error::from_errno("ask who is at the other end", errno);
  Peer peer{credentials.uid, credentials.gid, credentials.pid, {}};
  // Called twice, first with too little room to learn their number.
  size = 0;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, nullptr, &size) != 0 && errno == ERANGE) {
    peer.groups.resize(size / sizeof(gid_t));
    if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, peer.groups.data(), &size) != 0)
      peer.groups.clear();
  }
  return peer;
}

}  // namespace mete::net
