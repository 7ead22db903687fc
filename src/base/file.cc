// SPDX-License-Identifier: Apache-2.0
// See file.h.
#include "base/file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/fd.h"

namespace mete::base {

namespace {

Result<void> write_and_sync(int fd, std::string_view data, mode_t mode, const std::string& path) {
  if (!write_all(fd, data)) return Error::from_errno("write " + path, errno);
  if (fchmod(fd, mode) != 0) return Error::from_errno("chmod " + path, errno);
  if (fsync(fd) != 0) return Error::from_errno("sync " + path, errno);
  return {};
}

Result<std::string> read_to_end(int fd, const std::string& path, std::size_t max_bytes) {
  std::string data;
  char buffer[16384];
  for (;;) {
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::from_errno("read " + path, errno);
    if (got == 0) return data;
    data.append(buffer, static_cast<std::size_t>(got));
    if (data.size() > max_bytes)
      return Error::corrupt(path + " is larger than " + std::to_string(max_bytes) + " bytes");
  }
}

}  // namespace

Result<std::string> read_all(const std::string& path, std::size_t max_bytes) {
  const Result<Fd> fd = open_fd(path, O_RDONLY);
  if (!fd) return fd.error();
  return read_to_end(fd->get(), path, max_bytes);
}

Result<std::string> read_regular(const std::string& path, std::size_t max_bytes) {
  const Result<Fd> fd = open_fd(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (!fd) return fd.error();
  struct stat info {};
  if (fstat(fd->get(), &info) != 0) return Error::from_errno("look at " + path, errno);
  if (!S_ISREG(info.st_mode)) return Error::unsupported(path + " is not a regular file");
  return read_to_end(fd->get(), path, max_bytes);
}

Result<void> write_atomic(const std::string& path, std::string_view data, mode_t mode) {
  std::string temporary = path + ".XXXXXX";
  Fd fd(mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return Error::from_errno("create " + temporary, errno);
  Result<void> done = write_and_sync(fd.get(), data, mode, temporary);
  if (done && rename(temporary.c_str(), path.c_str()) != 0)
    done = Error::from_errno("rename " + temporary + " to " + path, errno);
  if (!done) {
    (void)unlink(temporary.c_str());
    return done;
  }
  return sync_folder(parent_path(path));
}

Result<void> sync_folder(const std::string& path) {
  const Result<Fd> folder = open_fd(path, O_RDONLY | O_DIRECTORY);
  if (!folder) return folder.error();
  if (fsync(folder->get()) != 0) return Error::from_errno("sync " + path, errno);
  return {};
}

Result<void> make_directories(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) == 0) return {};
  if (errno == ENOENT && parent_path(path) != path) {
    if (Result<void> r = make_directories(parent_path(path), mode); !r) return r;
    if (mkdir(path.c_str(), mode) == 0) return {};
  }
  const int error = errno;
  struct stat info {};
  if (error == EEXIST && stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
  // mkdir fails with EROFS even if the directory exists.
  if (error == EROFS && stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
  return Error::from_errno("make directory " + path, error == EEXIST ? ENOTDIR : error);
}

std::optional<FileId> file_id(const std::string& path) {
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0) return std::nullopt;
  return FileId{info.st_dev, info.st_ino};
}

std::optional<FileId> file_id(int descriptor) {
  struct stat info {};
  if (fstat(descriptor, &info) != 0) return std::nullopt;
  return FileId{info.st_dev, info.st_ino};
}

Result<void> remove_file(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return Error::from_errno("remove " + path, errno);
}

std::string join_path(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (!path.empty() && path.back() != '/') path += '/';
  return path.append(name);
}

std::string parent_path(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(path.substr(0, slash == 0 ? 1 : slash));
}

std::string real_path(const std::string& path) {
  char buffer[PATH_MAX];
  return realpath(path.c_str(), buffer) != nullptr ? buffer : "";
}

}  // namespace mete::base
