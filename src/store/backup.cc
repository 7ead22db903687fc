// SPDX-License-Identifier: Apache-2.0
// See backup.h. SQLite's online backup: it follows the changes that its source connection makes.
#include "store/backup.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "store/schema.h"

namespace mete::store {

namespace {

constexpr int kPages = 256;  // of 4 KiB, in one step

// The first bytes of a database of ours (docs/formats/store.md).
bool is_a_store(const std::string& path) {
  constexpr std::string_view kMagic{"SQLite format 3\0", 16};
  constexpr std::string_view kOurs = "mete";
  std::array<char, 100> head{};
  Result<Fd> file = base::open_fd(path, O_RDONLY | O_NOFOLLOW);
  if (!file || pread(file->get(), head.data(), head.size(), 0) != static_cast<ssize_t>(head.size()))
    return false;
  return std::string_view(head.data(), 16) == kMagic &&
         std::string_view(head.data() + 68, 4) == kOurs;
}

// The store's own file is never opened here: closing it would release the locks on it.
Result<void> check_target(Connection& source, const std::string& path) {
  struct stat there {};
  if (lstat(path.c_str(), &there) != 0) {
    if (errno == ENOENT) return {};
    return Error::from_errno("look at " + path, errno);
  }
  struct stat ours {};
  if (stat(sqlite3_db_filename(source.get(), "main"), &ours) == 0 && ours.st_ino == there.st_ino &&
      ours.st_dev == there.st_dev)
    return Error::invalid(path + " is the state itself").with_hint("choose another file");
  if (!S_ISREG(there.st_mode) || !is_a_store(path))
    return Error::invalid(path + " exists, and is not a backup of mete")
        .with_hint("choose another file");
  return {};
}

}  // namespace

Backup::Backup(std::string path, std::string part, Connection target)
    : path_(std::move(path)), part_(std::move(part)), target_(std::move(target)) {}

Backup::~Backup() {
  if (handle_ != nullptr) (void)sqlite3_backup_finish(handle_);
  target_.reset();
  if (!part_.empty()) (void)unlink(part_.c_str());
}

Result<std::unique_ptr<Backup>> Backup::begin(Connection& source, const std::string& path) {
  if (Result<void> r = check_target(source, path); !r) return std::move(r).error();
  const std::string part = path + ".part-" + std::to_string(getpid());
  if (Result<Fd> made = base::open_fd(part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600); !made)
    return std::move(made).error();
  Result<Connection> target = Connection::open(part);
  if (!target) {
    (void)unlink(part.c_str());
    return std::move(target).error();
  }
  std::unique_ptr<Backup> backup(new Backup(path, part, *std::move(target)));
  // A copy that is not finished is removed: it needs no journal and no syncs of its own.
  for (const char* sql :
       {"PRAGMA locking_mode = EXCLUSIVE", "PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF"})
    if (Result<void> r = backup->target_->run(sql); !r) return std::move(r).error();
  backup->handle_ = sqlite3_backup_init(backup->target_->get(), "main", source.get(), "main");
  if (backup->handle_ == nullptr)
    return to_error(backup->target_->get(), sqlite3_errcode(backup->target_->get()), "write");
  return backup;
}

Result<bool> Backup::step() {
  const int code = sqlite3_backup_step(handle_, kPages);
  if (code == SQLITE_DONE) return true;
  if (code == SQLITE_OK) return false;
  return to_error(target_->get(), code, "write");
}

Result<std::uint64_t> Backup::finish() {
  if (const int code = sqlite3_backup_finish(std::exchange(handle_, nullptr)); code != SQLITE_OK)
    return to_error(target_->get(), code, "write");
  // The source has a log beside it; the copy is one file.
  if (Result<void> r = target_->run("PRAGMA journal_mode = DELETE"); !r)
    return std::move(r).error();
  target_.reset();
  Result<Fd> file = base::open_fd(part_, O_RDWR | O_NOFOLLOW);
  if (!file) return std::move(file).error();
  struct stat info {};
  if (fsync(file->get()) != 0 || fstat(file->get(), &info) != 0)
    return Error::from_errno("write " + part_, errno);
  if (rename(part_.c_str(), path_.c_str()) != 0) return Error::from_errno("rename " + part_, errno);
  part_.clear();
  if (Result<void> r = base::sync_folder(base::parent_path(path_)); !r) return std::move(r).error();
  return static_cast<std::uint64_t>(info.st_size);
}

}  // namespace mete::store
