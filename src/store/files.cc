// SPDX-License-Identifier: Apache-2.0
// See files.h. The database file itself is never opened and closed here once it may be in use:
// closing any descriptor of a file releases all locks that the process has on it.
#include "store/files.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/fd.h"
#include "base/file.h"
#include "store/mark.h"

namespace mete::store {

namespace {

constexpr const char* kHint =
    "it must belong to the user meted runs as, and only they may write it";

Error untrusted(const std::string& path, const char* why) {
  return Error::denied(path + " cannot be trusted").with_evidence(path + why).with_hint(kHint);
}

// SQLite would open a read-only file and fail at its first lock, with "Bad file descriptor".
Error not_writable(const std::string& path, int error) {
  return Error::from_errno("the state cannot be written: " + path, error)
      .with_hint("make it writable, or set METE_STATE_DIR to a folder of your own on a local disk");
}

// The name must be on the disk before anything is reported as stored.
Result<void> make_empty(const std::string& folder, const std::string& path) {
  Result<Fd> made = base::open_fd(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (!made) return std::move(made).error();
  if (Result<void> r = base::sync_folder(folder); !r) return r;
  return base::sync_folder(base::parent_path(folder));
}

Result<void> check_database(const std::string& path, const struct stat& info) {
  if (S_ISLNK(info.st_mode)) return untrusted(path, " is a symbolic link");
  if (!S_ISREG(info.st_mode)) return untrusted(path, " is not a file");
  if (info.st_uid != geteuid()) return untrusted(path, " belongs to another user");
  if ((info.st_mode & 022) != 0) return untrusted(path, " is writable by others");
  if (info.st_nlink != 1) return untrusted(path, " has a second name");
  if (access(path.c_str(), R_OK | W_OK) != 0) return not_writable(path, errno);
  // Read access for others does not invalidate it; remove it.
  if ((info.st_mode & 077) != 0 && chmod(path.c_str(), 0600) != 0)
    return Error::from_errno("chmod " + path, errno);
  return {};
}

// Whether PATH is there with bytes in it.
bool has_bytes(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 && info.st_size > 0;
}

}  // namespace

Result<std::string> trusted_folder(const std::string& folder) {
  if (Result<void> made = base::make_directories(folder); !made) return std::move(made).error();
  char real[PATH_MAX];
  if (realpath(folder.c_str(), real) == nullptr) return Error::from_errno("find " + folder, errno);
  struct stat info {};
  if (lstat(real, &info) != 0) return Error::from_errno("look at " + folder, errno);
  if (info.st_uid != geteuid()) return untrusted(real, " belongs to another user");
  if ((info.st_mode & 022) != 0) return untrusted(real, " is writable by others");
  if (access(real, W_OK | X_OK) != 0) return not_writable(real, errno);
  return std::string(real);
}

Result<Files> prepare_files(const std::string& folder) {
  Result<std::string> real = trusted_folder(folder);
  if (!real) return std::move(real).error();
  Files files{*real, base::join_path(*real, "meted.db")};
  files.unclean = has_bytes(files.database + "-wal");

  struct stat info {};
  const bool exists = lstat(files.database.c_str(), &info) == 0;
  if (!exists && errno != ENOENT) return Error::from_errno("look at " + files.database, errno);
  // SQLite would discard a log without its database, and with it the running jobs.
  if (files.unclean && (!exists || info.st_size == 0)) {
    return Error::corrupt(files.database + " is gone, but its log is there")
        .with_evidence(files.database + "-wal is not empty")
        .with_hint("put the database back, or move the log away to begin with an empty one");
  }
  // An empty database was never used; beside a mark it was.
  if (has_bytes(mark_path(*real)) && (!exists || info.st_size == 0)) {
    return Error::corrupt(files.database + (exists ? " is empty" : " is gone") +
                          ", but there was one")
        .with_evidence(mark_path(*real) + " says so")
        .with_hint(
            "put the database back; or move its mark away to begin with an empty one, and "
            "lose all jobs");
  }
  if (exists) {
    if (Result<void> r = check_database(files.database, info); !r) return std::move(r).error();
  } else if (Result<void> r = make_empty(files.folder, files.database); !r) {
    return std::move(r).error();
  }
  return files;
}

Ballast::Ballast(const std::string& folder) : path_(base::join_path(folder, "ballast")) {}

bool Ballast::free() { return unlink(path_.c_str()) == 0; }

bool Ballast::restore() {
  Result<Fd> file = base::open_fd(path_, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);
  // Blocks that are allocated already stay as they are.
  if (file && posix_fallocate(file->get(), 0, kBytes) == 0) return true;
  (void)unlink(path_.c_str());
  return false;
}

}  // namespace mete::store
