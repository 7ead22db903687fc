// SPDX-License-Identifier: Apache-2.0
// See address_file.h.
#include "net/address_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/file.h"
#include "base/text.h"

namespace mete::net {

namespace {

constexpr std::size_t kMaxBytes = 4096;

std::string path_in(const std::string& state_dir) {
  return base::join_path(state_dir, "meted.address");
}

std::optional<Address> parse(std::string_view text) {
  if (!text.ends_with('\n')) return std::nullopt;
  text.remove_suffix(1);
  Address address;
  for (const std::string_view line : base::split(text, '\n')) {
    if (!line.starts_with('/')) return std::nullopt;
    if (address.socket.empty())
      address.socket = line;
    else if (address.former.size() < kMaxFormer)
      address.former.emplace_back(line);
  }
  return address;
}

Result<void> write_lines(int file, const Address& address) {
  std::string text = address.socket + "\n";
  for (const std::string& path : address.former) text += path + "\n";
  const ssize_t written = write(file, text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size())) return {};
  return Error::from_errno("write the address of the daemon", written < 0 ? errno : ENOSPC);
}

}  // namespace

bool Address::was_at(const std::string& path) const {
  return path == socket || std::find(former.begin(), former.end(), path) != former.end();
}

Result<Address> read_address(const std::string& state_dir) {
  const std::string path = path_in(state_dir);
  const Result<Fd> file = base::open_fd(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (!file) return file.error();
  struct stat info {};
  if (fstat(file->get(), &info) != 0) return Error::from_errno("look at " + path, errno);
  if (!S_ISREG(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 022) != 0)
    return Error::denied(path + " is not a file of ours alone");
  char text[kMaxBytes];
  const ssize_t got = pread(file->get(), text, sizeof text, 0);
  if (got < 0) return Error::from_errno("read " + path, errno);
  std::optional<Address> address = parse({text, static_cast<std::size_t>(got)});
  if (!address) return Error::corrupt(path + " does not say where a daemon listens");
  address->alive = flock(file->get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  return *std::move(address);
}

Result<Fd> write_address(const std::string& state_dir, const std::string& socket) {
  Address address{socket, {}, true};
  if (const Result<Address> before = read_address(state_dir)) {
    std::vector<std::string> paths = before->former;
    paths.insert(paths.begin(), before->socket);
    for (const std::string& path : paths)
      if (!address.was_at(path) && address.former.size() < kMaxFormer)
        address.former.push_back(path);
  }
  // The file gets its name only when it is whole and locked. After a crash it may be empty: then no
  // client from before the crash is left. Errors name the file and not the temporary one, whose
  // name changes with each try: the daemon logs an error once as long as its text is the same.
  const std::string path = path_in(state_dir);
  std::string temporary = path + ".XXXXXX";
  Fd file(mkostemp(temporary.data(), O_CLOEXEC));
  if (!file) return Error::from_errno("create " + path, errno);
  Result<void> done;
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) done = Error::from_errno("lock " + path, errno);
  if (done) done = write_lines(file.get(), address);
  if (done && rename(temporary.c_str(), path.c_str()) != 0)
    done = Error::from_errno("replace " + path, errno);
  if (done) return file;
  (void)unlink(temporary.c_str());
  return std::move(done).error();
}

}  // namespace mete::net
