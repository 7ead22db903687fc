// SPDX-License-Identifier: Apache-2.0
// See terminal_door.h. The keeper's poll loop asks listen() for descriptors: the terminal, the
// socket and each client. Output of the program goes to the log, to a ring of the last kRemembered
// bytes and to every client; input frames of the clients go to the terminal as fast as the program
// reads them.
#include "launch/terminal_door.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file.h"

namespace mete::launch {

namespace {

constexpr std::size_t kHeader = 3;         // of a frame: kind, length (2 bytes, little-endian)
constexpr std::size_t kMaxFrame = 0xffff;  // what follows it
constexpr winsize kFirstSize{24, 80, 0, 0};

std::string frame(char kind, std::string_view bytes) {
  std::string text(1, kind);
  text += static_cast<char>(bytes.size() & 0xff);
  text += static_cast<char>(bytes.size() >> 8);
  return text.append(bytes);
}

std::uint16_t number_at(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint16_t>(static_cast<unsigned char>(bytes[at]) |
                                    static_cast<unsigned char>(bytes[at + 1]) << 8);
}

// Opened through the folder's descriptor: an address holds 107 bytes, and a path may be longer.
struct Address {
  Fd folder;
  sockaddr_un name{};
};
Result<Address> address_of(const std::string& path) {
  Address address;
  Result<Fd> folder = base::open_fd(base::parent_path(path), O_PATH | O_DIRECTORY);
  if (!folder) return std::move(folder).error();
  address.folder = *std::move(folder);
  const std::string name = "/proc/self/fd/" + std::to_string(address.folder.get()) + "/" +
                           path.substr(path.rfind('/') + 1);
  address.name.sun_family = AF_UNIX;
  if (name.size() >= sizeof address.name.sun_path)
    return Error::invalid("the name of the socket is too long: " + path);
  std::memcpy(address.name.sun_path, name.c_str(), name.size() + 1);
  return address;
}

Result<Fd> listen_at(const std::string& path) {
  Result<Address> address = address_of(path);
  if (!address) return std::move(address).error();
  Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return Error::from_errno("make a socket", errno);
  (void)unlink(path.c_str());
  const mode_t before = umask(0177);
  const int bound =
      bind(listener.get(), reinterpret_cast<const sockaddr*>(&address->name), sizeof address->name);
  const int error = errno;
  (void)umask(before);
  if (bound != 0 || listen(listener.get(), 16) != 0)
    return Error::from_errno("listen at " + path, bound != 0 ? error : errno);
  return listener;
}

struct Pair {
  Fd master;
  Fd terminal;
};
Result<Pair> make_terminal() {
  Pair pair;
  pair.master.reset(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  char name[64];
  if (!pair.master || grantpt(pair.master.get()) != 0 || unlockpt(pair.master.get()) != 0 ||
      ptsname_r(pair.master.get(), name, sizeof name) != 0 ||
      fcntl(pair.master.get(), F_SETFL, O_NONBLOCK) != 0)
    return Error::from_errno("make a terminal", errno);
  Result<Fd> terminal = base::open_fd(name, O_RDWR | O_NOCTTY);
  if (!terminal) return std::move(terminal).error();
  pair.terminal = *std::move(terminal);
  (void)ioctl(pair.master.get(), TIOCSWINSZ, &kFirstSize);
  return pair;
}

}  // namespace

std::string input_frame(std::string_view bytes) {
  std::string text;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kMaxFrame)))
    text += frame('i', bytes.substr(0, kMaxFrame));
  return text;
}

std::string window_frame(std::uint16_t rows, std::uint16_t columns) {
  const char size[] = {static_cast<char>(rows & 0xff), static_cast<char>(rows >> 8),
                       static_cast<char>(columns & 0xff), static_cast<char>(columns >> 8)};
  return frame('w', {size, sizeof size});
}

Result<Fd> connect_terminal(const std::string& path, std::uint32_t owner) {
  Result<Address> address = address_of(path);
  if (!address) return std::move(address).error();
  struct stat info {};
  const std::string name = path.substr(path.rfind('/') + 1);
  if (fstatat(address->folder.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return Error::from_errno("look at " + path, errno);
  if (!S_ISSOCK(info.st_mode)) return Error::denied(path + " is not a socket");
  // Non-blocking: a full accept queue must not make us hang.
  Fd client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!client) return Error::from_errno("make a socket", errno);
  if (connect(client.get(), reinterpret_cast<const sockaddr*>(&address->name),
              sizeof address->name) != 0) {
    if (errno == ECONNREFUSED) return Error::busy("no keeper listens at " + path);
    if (errno == EAGAIN) return Error::busy("too many clients wait at " + path);
    return Error::from_errno("connect to " + path, errno);
  }
  // A name can change after it was checked; the peer's user cannot.
  ucred who{};
  socklen_t size = sizeof who;
  if (getsockopt(client.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.uid != owner)
    return Error::denied("the socket " + path + " belongs to another user than the job");
  if (fcntl(client.get(), F_SETFL, 0) != 0) return Error::from_errno("prepare a socket", errno);
  return client;
}

Result<TerminalDoor> TerminalDoor::open(const std::string& socket) {
  Result<Pair> pair = make_terminal();
  if (!pair) return std::move(pair).error();
  Result<Fd> listener = listen_at(socket);
  if (!listener) return std::move(listener).error();
  return TerminalDoor(socket, std::move(pair->master), std::move(pair->terminal),
                      *std::move(listener));
}

TerminalDoor::TerminalDoor(std::string path, Fd master, Fd terminal, Fd listener)
    : path_(std::move(path)),
      master_(std::move(master)),
      terminal_(std::move(terminal)),
      listener_(std::move(listener)),
      file_(base::file_id(path_)) {}

TerminalDoor::~TerminalDoor() {
  if (listener_ && file_ && file_ == base::file_id(path_)) (void)unlink(path_.c_str());
}

void TerminalDoor::listen(std::vector<pollfd>& list) const {
  list.push_back(
      {master_.get(), static_cast<short>(untyped_.empty() ? POLLIN : POLLIN | POLLOUT), 0});
  list.push_back({clients_.size() < kMaxClients ? listener_.get() : -1, POLLIN, 0});
  for (const Client& client : clients_) {
    // A client that types more than the program reads has to wait.
    const int reads = untyped_.size() < kMaxUntyped ? POLLIN : 0;
    const int writes = client.unsent.empty() ? 0 : POLLOUT;
    list.push_back({client.socket.get(), static_cast<short>(reads | writes), 0});
  }
}

std::string TerminalDoor::heard(std::span<const pollfd> list) {
  for (std::size_t i = 0; i < clients_.size() && i + 2 < list.size(); ++i) {
    const short now = list[i + 2].revents;
    if ((now & POLLOUT) != 0) send_to(clients_[i]);
    const bool gone = (now & (POLLHUP | POLLERR)) != 0;
    if (untyped_.size() < kMaxUntyped && (gone || (now & POLLIN) != 0))
      receive(clients_[i]);
    else if (gone)
      clients_[i].socket.reset();
  }
  std::erase_if(clients_, [](const Client& client) { return !client.socket; });
  if (list[1].revents != 0) accept_clients();
  type();
  return list[0].revents != 0 ? read_program() : "";
}

std::string TerminalDoor::drain() {
  std::string all;
  for (std::string more = read_program(); !more.empty(); more = read_program()) all += more;
  return all;
}

std::string TerminalDoor::read_program() {
  std::string bytes(16 << 10, '\0');
  ssize_t got = 0;
  do {
    got = read(master_.get(), bytes.data(), bytes.size());
  } while (got < 0 && errno == EINTR);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  show(bytes);
  return bytes;
}

void TerminalDoor::show(std::string_view bytes) {
  if (bytes.empty()) return;
  last_.append(bytes);
  if (last_.size() > 2 * kRemembered) last_.erase(0, last_.size() - kRemembered);
  for (Client& client : clients_) {
    client.unsent.append(bytes);
    send_to(client);
  }
  std::erase_if(clients_, [](const Client& client) { return !client.socket; });
}

void TerminalDoor::accept_clients() {
  while (clients_.size() < kMaxClients) {
    Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    ucred who{};
    socklen_t size = sizeof who;
    if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 ||
        (who.uid != geteuid() && who.uid != 0))
      continue;
    Client client{std::move(socket), "",
                  last_.substr(last_.size() - std::min(last_.size(), kRemembered))};
    send_to(client);
    if (client.socket) clients_.push_back(std::move(client));
  }
}

void TerminalDoor::receive(Client& client) {
  if (!client.socket) return;
  char buffer[4096];
  const ssize_t got = recv(client.socket.get(), buffer, sizeof buffer, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    client.socket.reset();
    return;
  }
  client.received.append(buffer, static_cast<std::size_t>(got));
  understand(client);
}

// Skips unknown frames: they are from a newer client.
void TerminalDoor::understand(Client& client) {
  std::string_view rest = client.received;
  while (rest.size() >= kHeader) {
    const std::size_t length = number_at(rest, 1);
    if (rest.size() < kHeader + length) break;
    const std::string_view body = rest.substr(kHeader, length);
    if (rest[0] == 'i') untyped_.append(body);
    if (rest[0] == 'w' && length == 4) {
      const winsize size{number_at(body, 0), number_at(body, 2), 0, 0};
      (void)ioctl(master_.get(), TIOCSWINSZ, &size);
    }
    rest.remove_prefix(kHeader + length);
  }
  client.received.erase(0, client.received.size() - rest.size());
}

void TerminalDoor::send_to(Client& client) {
  while (!client.unsent.empty() && client.socket) {
    const ssize_t sent =
        send(client.socket.get(), client.unsent.data(), client.unsent.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN && client.unsent.size() <= kMaxUnsent) return;
    if (sent < 0) {
      client.socket.reset();
      return;
    }
    client.unsent.erase(0, static_cast<std::size_t>(sent));
  }
}

void TerminalDoor::type() {
  while (!untyped_.empty()) {
    const ssize_t written = write(master_.get(), untyped_.data(), untyped_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;  // later, when the program reads
    untyped_.erase(0, static_cast<std::size_t>(written));
  }
}

}  // namespace mete::launch
