// SPDX-License-Identifier: Apache-2.0
// See door.h.
#include "park/door.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace mete::park {

namespace {

constexpr int kBacklog = 512;

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path[0] != '/' || path.size() >= sizeof address.sun_path)
    return Error::invalid("a socket needs an absolute path of at most 107 bytes")
        .with_evidence(base::quote(path));
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<Fd> take_lock(const std::string& path) {
  Result<Fd> lock = base::open_fd(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
  if (!lock) return lock;
  if (flock(lock->get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno == EWOULDBLOCK) return Error::busy("another mover holds " + path);
  return Error::from_errno("lock " + path, errno);
}

Result<void> remove_stale(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0)
    return errno == ENOENT ? Result<void>() : Error::from_errno("look at " + path, errno);
  if (!S_ISSOCK(info.st_mode))
    return Error::invalid(path + " is not a socket, and is left as it is");
  return base::remove_file(path);
}

Result<ucred> peer_of(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    return Error::from_errno("ask who is there", errno);
  return peer;
}

}  // namespace

Result<Door> Door::open(const std::string& path, mode_t mode) {
  const Result<sockaddr_un> address = address_of(path);
  if (!address) return address.error();
  Result<Fd> lock = take_lock(path + ".lock");
  if (!lock) return std::move(lock).error();
  if (Result<void> removed = remove_stale(path); !removed) return std::move(removed).error();
  Door door;
  door.path_ = path;
  door.lock_ = std::move(*lock);
  door.socket_ = Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!door.socket_) return Error::from_errno("make a socket", errno);
  const int socket = door.socket_.get();
  // Linux gives the file the mode of the unbound socket, less the umask: closed from the start.
  if (fchmod(socket, 0600) != 0 ||
      bind(socket, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 ||
      chmod(path.c_str(), mode) != 0 || listen(socket, kBacklog) != 0)
    return Error::from_errno("make the socket " + path, errno);
  door.file_ = base::file_id(path);
  return door;
}

std::optional<Visitor> Door::answer() const {
  Fd socket(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) return std::nullopt;
  const Result<ucred> peer = peer_of(socket.get());
  if (!peer) return std::nullopt;
  return Visitor{std::move(socket), peer->uid, peer->pid};
}

// If the lock file was removed, the path may belong to another mover: leave everything as it is.
void Door::close() {
  if (file_ && file_ == base::file_id(path_) &&
      base::file_id(lock_.get()) == base::file_id(path_ + ".lock"))
    (void)unlink(path_.c_str());
}

Result<Fd> connect_to_mover(const std::string& path, int timeout_ms) {
  const Result<sockaddr_un> address = address_of(path);
  if (!address) return address.error();
  const int wait = timeout_ms == 0 ? SOCK_NONBLOCK : 0;
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | wait, 0));
  if (!socket) return Error::from_errno("make a socket", errno);
  const timeval limit{timeout_ms / 1000, timeout_ms % 1000 * 1000L};
  if (setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0 ||
      setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0)
    return Error::from_errno("set a time limit", errno);
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0) {
    if (errno == ECONNREFUSED || errno == EAGAIN) return Error::busy("no mover listens at " + path);
    return Error::from_errno("connect to " + path, errno);
  }
  const Result<ucred> peer = peer_of(socket.get());
  if (!peer) return peer.error();
  if (peer->uid != geteuid() && peer->uid != 0)
    return Error::denied("the mover at " + path + " is user " + std::to_string(peer->uid) + "'s");
  return socket;
}

}  // namespace mete::park
