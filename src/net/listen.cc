// SPDX-License-Identifier: Apache-2.0
// See listen.h. claim_place() prepares the folder, takes PATH.lock and removes a stale socket;
// open_door() binds and listens. A socket from systemd is used as it is. While the lock file is in
// place, no other daemon binds the path, so the socket can be removed or made again safely.
#include "net/listen.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "net/life_lock.h"

namespace mete::net {

namespace {

constexpr int kInheritedFd = 3;  // SD_LISTEN_FDS_START
constexpr Milliseconds kProbe{1000};

const char* const kFolderHint = "set METE_SOCKET to a path in a folder of your own";

std::string octal(mode_t mode) {
  std::string text = "0000";
  for (std::size_t i = 4; i-- > 0; mode >>= 3) text[i] = static_cast<char>('0' + (mode & 7));
  return text;
}

// Under the lock. If the lock file was removed, a living daemon may still listen: check first.
Result<void> remove_stale(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0)
    return errno == ENOENT ? Result<void>() : Error::from_errno("look at " + path, errno);
  if (!S_ISSOCK(info.st_mode))
    return Error::invalid(path + " is not a socket, and is left as it is")
        .with_hint("remove it, or set METE_SOCKET to another path");
  if (const Result<Fd> alive = connect_unix(path, kProbe);
      alive || alive.error().code == ErrorCode::kIo)
    return Error::busy("another daemon listens at " + path);
  return base::remove_file(path);
}

Result<Fd> bind_new(const std::string& path, bool system) {
  const Result<sockaddr_un> address = unix_address(path);
  if (!address) return address.error();
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return Error::from_errno("make a socket", errno);
  // Linux gives the file the mode of the unbound socket, less the umask: closed from the start.
  if (fchmod(socket.get(), 0600) != 0)
    return Error::from_errno("close the socket to others", errno);
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0)
    return Error::from_errno("make the socket " + path, errno);
  if (chmod(path.c_str(), system ? 0666 : 0600) != 0)
    return Error::from_errno("set the mode of " + path, errno);
  if (listen(socket.get(), SOMAXCONN) != 0) return Error::from_errno("listen at " + path, errno);
  return socket;
}

std::string take_variable(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  (void)unsetenv(name);
  return text;
}

struct Inherited {
  Fd socket;
  std::string path;
};

// The socket that systemd passed to this very process; nothing if there is none.
Result<Inherited> take_inherited() {
  const std::string pid = take_variable("LISTEN_PID");
  const std::string count = take_variable("LISTEN_FDS");
  (void)take_variable("LISTEN_FDNAMES");
  if (pid != std::to_string(getpid())) return Inherited{};
  const Result<std::uint64_t> number = base::parse_uint(count);
  if (!number || *number == 0) return Inherited{};
  Inherited found{Fd(kInheritedFd), ""};
  int listens = 0;
  socklen_t size = sizeof listens;
  sockaddr_un address{};
  socklen_t length = sizeof address;
  const int fd = found.socket.get();
  if (*number != 1 || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 ||
      listens == 0 || getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0 ||
      address.sun_family != AF_UNIX || address.sun_path[0] != '/')
    return Error::invalid("the descriptors from systemd are not one listening Unix socket")
        .with_evidence("LISTEN_FDS=" + count)
        .with_hint("have one ListenStream= with an absolute path in the unit");
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
    return Error::from_errno("prepare the socket from systemd", errno);
  found.path.assign(address.sun_path);
  return found;
}

}  // namespace

Result<void> prepare_socket_folder(const std::string& folder, bool system) {
  const mode_t mode = system ? 0755 : 0700;
  if (Result<void> made = base::make_directories(folder, mode); !made)
    return std::move(made).error().within("the folder of the socket").with_hint(kFolderHint);
  struct stat info {};
  if (stat(folder.c_str(), &info) != 0) return Error::from_errno("look at " + folder, errno);
  if (info.st_uid != geteuid())
    return Error::denied("the folder of the socket is not ours")
        .with_evidence(folder + " belongs to user " + std::to_string(info.st_uid))
        .with_hint(kFolderHint);
  if ((info.st_mode & 022) != 0)
    return Error::denied("others may write in the folder of the socket")
        .with_evidence(folder + " has mode " + octal(info.st_mode & 07777))
        .with_hint(kFolderHint);
  // mkdir applies the umask.
  if (system && (info.st_mode & 0755) != 0755 && chmod(folder.c_str(), 0755) != 0)
    return Error::from_errno("open " + folder + " for others", errno);
  return {};
}

Listener::Listener(Listener&& other) noexcept
    : lock_(std::move(other.lock_)),
      socket_(std::move(other.socket_)),
      path_(std::move(other.path_)),
      system_(other.system_),
      inherited_(other.inherited_),
      file_(std::exchange(other.file_, std::nullopt)) {}

Listener::~Listener() { close_door(); }

// While the lock is in place no other daemon binds there. Without it (the folder was removed) one
// may bind at any moment, even between a look at the path and its removal.
bool Listener::owns_path() const { return lock_ && lock_is_in_place(lock_.get(), path_ + ".lock"); }

bool Listener::is_in_place() const {
  return inherited_ || (file_ && file_ == base::file_id(path_));
}

void Listener::close_door() {
  if (inherited_) return;
  if (file_ && owns_path() && is_in_place()) (void)unlink(path_.c_str());
  file_.reset();
}

Result<Listener> claim_place(const ListenAt& at) {
  Result<Inherited> inherited = take_inherited();
  if (!inherited) return std::move(inherited).error();
  Listener listener;
  listener.inherited_ = inherited->socket.valid();
  listener.path_ = listener.inherited_ ? inherited->path : at.path;
  listener.system_ = at.system;
  // The probe and the lock have longer names than the socket; report the socket's own limit.
  if (const Result<sockaddr_un> address = unix_address(listener.path_); !address)
    return address.error();
  if (Result<void> r = prepare_socket_folder(base::parent_path(listener.path_), at.system); !r)
    return std::move(r).error();
  Result<Fd> lock = take_lock(listener.path_ + ".lock", Deadline::in(at.wait_for_lock));
  if (!lock && lock.error().code == ErrorCode::kBusy)
    return Error::busy("another daemon runs at " + listener.path_)
        .with_evidence(lock.error().message);
  if (!lock) return std::move(lock).error();
  listener.lock_ = *std::move(lock);
  if (listener.inherited_) {
    listener.socket_ = std::move(inherited->socket);
    return listener;
  }
  if (Result<void> r = remove_stale(listener.path_); !r) return std::move(r).error();
  return listener;
}

Result<void> Listener::open_door() {
  if (inherited_ || file_) return {};
  return bind_door();
}

Result<void> Listener::reopen_door() {
  if (is_in_place()) return {};
  if (!owns_path()) return Error::busy("the lock " + path_ + ".lock is gone");
  if (Result<void> r = remove_stale(path_); !r) return r;
  return bind_door();
}

Result<void> Listener::bind_door() {
  Result<Fd> socket = bind_new(path_, system_);
  if (!socket) return std::move(socket).error();
  socket_ = *std::move(socket);
  file_ = base::file_id(path_);
  return {};
}

Result<Listener> listen_at(const ListenAt& at) {
  Result<Listener> listener = claim_place(at);
  if (!listener) return listener;
  if (Result<void> r = listener->open_door(); !r) return std::move(r).error();
  return listener;
}

Result<rlimit> raise_descriptor_limit() {
  rlimit before{};
  if (getrlimit(RLIMIT_NOFILE, &before) != 0)
    return Error::from_errno("ask for the limit of descriptors", errno);
  rlimit raised = before;
  raised.rlim_cur = raised.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &raised) != 0)
    return Error::from_errno("raise the limit of descriptors", errno);
  return before;
}

}  // namespace mete::net
