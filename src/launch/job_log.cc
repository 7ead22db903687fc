// SPDX-License-Identifier: Apache-2.0
// See job_log.h. Each write() compares the open file with its name first: a file that was removed
// or moved is opened anew, and a full one is renamed to FILE.1. Bytes that cannot be written are
// counted; the next write that succeeds begins with a line about them.
#include "launch/job_log.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "seam/clock.h"

namespace mete::launch {

namespace {

bool is_null_device(const struct stat& info) {
  return S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3);
}

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

Error no_log(const std::string& path, mode_t mode) {
  return Error::invalid("the log " + path + " is " + kind_of(mode))
      .with_hint("a log is a regular file, or /dev/null");
}

// The path of an open file, links resolved.
std::string name_of(int file, const std::string& otherwise) {
  char path[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t length = readlink(link.c_str(), path, sizeof path);
  if (length <= 0 || path[0] != '/') return otherwise;
  return std::string(path, static_cast<std::size_t>(length));
}

std::string old_one(const std::string& path) { return path + ".1"; }

}  // namespace

Result<JobLog::Opened> JobLog::open_file(const LogPlace& place) {
  const std::string& path = place.path;
  // Checked before it is opened, since opening some files has effects; and again afterwards.
  struct stat info {};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !is_null_device(info))
    return no_log(path, info.st_mode);
  const mode_t before = umask(~place.mode & 0777);
  Result<Fd> file =
      base::open_fd(path, O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY, place.mode);
  (void)umask(before);
  if (!file) {
    Error error = std::move(file).error();
    error.message = "the log cannot be written: " + error.message;
    return error;
  }
  if (fstat(file->get(), &info) != 0) return Error::from_errno("look at " + path, errno);
  if (!S_ISREG(info.st_mode) && !is_null_device(info)) return no_log(path, info.st_mode);
  return Opened{*std::move(file), is_null_device(info)};
}

Result<JobLog> JobLog::open(const LogPlace& place) {
  Result<Opened> opened = open_file(place);
  if (!opened) return std::move(opened).error();
  LogPlace real = place;
  real.path = name_of(opened->file.get(), place.path);
  return JobLog(std::move(real), *std::move(opened));
}

JobLog::JobLog(LogPlace place, Opened opened)
    : place_(std::move(place)),
      times_(place_.path),
      file_(std::move(opened.file)),
      null_(opened.null) {
  struct stat info {};
  if (null_ || fstat(file_.get(), &info) != 0) return;
  before_ = before_of(place_.path).bytes;
  if (info.st_size == 0 && before_ != 0) {  // the recorded position belongs to a file that was
                                            // removed
    times_.forget();
    before_ = 0;
  }
}

void JobLog::write(std::string_view bytes) {
  if (null_ || bytes.empty()) return;
  if (!has_place_for(bytes.size())) {
    drop(bytes.size(), EFBIG);
    return;
  }
  if (unsaid_ > 0) {
    const std::string line =
        std::string(line_begins_ ? "" : "\n") + "mete: " + std::to_string(unsaid_) +
        " bytes of output were lost here: " + std::generic_category().message(lost_by_) + "\n";
    if (append(line) == line.size()) unsaid_ = 0;
  }
  // Not behind half a line about lost output: that line is written again, and counts these bytes
  // too.
  const std::size_t written = unsaid_ > 0 ? 0 : append(bytes);
  if (written < bytes.size()) drop(bytes.size() - written, errno);
}

void JobLog::say(std::string_view text) {
  write(std::string(line_begins_ ? "" : "\n") + "mete: " + std::string(text) + "\n");
}

// Returns how many bytes were written; errno says why not all.
std::size_t JobLog::append(std::string_view bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = ::write(file_.get(), bytes.data() + done, bytes.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) break;
    done += static_cast<std::size_t>(written);
  }
  if (done > 0) line_begins_ = bytes[done - 1] == '\n';
  return done;
}

void JobLog::drop(std::size_t count, int error) {
  lost_ += count;
  unsaid_ += count;
  lost_by_ = error;
}

bool JobLog::has_place_for(std::size_t more) {
  struct stat opened {};
  struct stat named {};
  if (fstat(file_.get(), &opened) != 0) return true;
  const bool there = stat(place_.path.c_str(), &named) == 0;
  if (!there || named.st_ino != opened.st_ino || named.st_dev != opened.st_dev) {
    open_again();  // removed, or moved away by a log rotation
    before_ = before_of(place_.path).bytes;
    return true;
  }
  const auto size = static_cast<std::uint64_t>(opened.st_size);
  if (place_.limit.count() == 0 || size == 0 || size + more <= place_.limit.count()) {
    times_.mark(seam::system_clock().wall(), size);
    return true;
  }
  // In a folder where we may not rename there is no way to make room without destroying what is
  // there.
  if (rename(place_.path.c_str(), old_one(place_.path).c_str()) != 0) return false;
  times_.rotated(old_one(place_.path));
  const LogBefore before{before_ + size, !line_begins_};
  open_again();
  before_ = before.bytes;
  times_.goes_on(before);
  return true;
}

// If that fails, the old file stays in use.
void JobLog::open_again() {
  Result<Opened> opened = open_file(place_);
  if (!opened || opened->null) return;
  file_ = std::move(opened->file);
  line_begins_ = true;
  struct stat info {};
  const bool known = fstat(file_.get(), &info) == 0;
  times_.mark_new_file(seam::system_clock().wall(),
                       known ? static_cast<std::uint64_t>(info.st_size) : 0);
}

Bytes JobLog::size() const {
  Bytes total;
  if (null_) return total;
  for (const std::string& path : {place_.path, old_one(place_.path)}) {
    struct stat info {};
    if (stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode))
      total += Bytes::from_bytes(static_cast<std::uint64_t>(info.st_size));
  }
  return total;
}

}  // namespace mete::launch
