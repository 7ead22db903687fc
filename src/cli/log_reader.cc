// SPDX-License-Identifier: Apache-2.0
// See log_reader.h. parts_ holds the open files in the order in which they are read: FILE.1 if it
// belongs to this job, then FILE. next() reads on; at the end of the last part it checks whether
// FILE is another file now (replaced) and then opens what followed (follow_rename). inotify wakes
// the caller; correctness does not depend on it.
#include "cli/log_reader.h"

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/file.h"
#include "launch/log_times.h"

namespace mete::cli {

namespace {

constexpr std::size_t kBlock = 64 << 10;

struct Seen {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  WallTime written;
  bool has_name = false;
  bool same_file(const Seen& other) const { return device == other.device && inode == other.inode; }
};

Seen seen_of(const struct stat& status) {
  return {status.st_dev, status.st_ino, status.st_size,
          WallTime{status.st_mtim.tv_sec * 1000 + status.st_mtim.tv_nsec / 1'000'000},
          status.st_nlink != 0};
}

std::optional<Seen> look_at(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return std::nullopt;
  return seen_of(status);
}

std::optional<Seen> look_at(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  return seen_of(status);
}

// Does not block on a pipe; terminals and folders are no logs.
Result<Fd> open_log(const std::string& path) {
  Result<Fd> file = base::open_fd(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file) return file;
  struct stat status {};
  if (fstat(file->get(), &status) != 0) return Error::from_errno("look at " + path, errno);
  if (!S_ISREG(status.st_mode)) return Error::unsupported(path + " is not a regular file");
  return file;
}

Result<std::size_t> read_at(int fd, char* into, std::size_t most, off_t at) {
  for (;;) {
    const ssize_t got = pread(fd, into, most, at);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) return Error::from_errno("read the log", errno);
  }
}

}  // namespace

Result<Tail> tail_of(int fd, std::uint64_t lines) {
  const std::optional<Seen> file = look_at(fd);
  if (!file) return Error::from_errno("look at the log", errno);
  Tail tail{file->size, 0};
  std::array<char, kBlock> block{};
  off_t begin = file->size;  // start of the part that was read
  while (begin > 0 && lines > 0) {
    const off_t from = std::max<off_t>(0, begin - static_cast<off_t>(kBlock));
    const Result<std::size_t> got =
        read_at(fd, block.data(), static_cast<std::size_t>(begin - from), from);
    if (!got) return got.error();
    if (from + static_cast<off_t>(*got) < begin) return Tail{0, 0};  // truncated while we read
    for (off_t at = begin - 1; at >= from; --at) {
      const bool ends_line = block[static_cast<std::size_t>(at - from)] == '\n';
      if (!ends_line || at == file->size - 1) continue;  // the newline that ends the last line
      tail.begin = at + 1;
      if (++tail.lines == lines) return tail;
    }
    begin = from;
  }
  if (lines > 0 && file->size > 0) tail = {0, tail.lines + 1};
  return tail;
}

Result<LogReader> LogReader::open(std::string path, const From& from) {
  // The companions of a log (FILE.1, its times) are beside the file itself, not beside a link to
  // it.
  const std::string real = base::real_path(path);
  LogReader reader(real.empty() ? std::move(path) : real);
  if (Result<void> r = reader.add_parts(from); !r) return std::move(r).error();
  reader.watch();
  return reader;
}

Result<void> LogReader::skip_until(WallTime since, const std::string& path, Part& part) {
  const Result<std::uint64_t> offset = launch::offset_since(path, since);
  if (!offset)
    return Error::io("it is not known when what was written to " + path)
        .with_evidence(offset.error().message)
        .with_hint("--tail 100 shows the last lines");
  const std::optional<Seen> file = look_at(part.file.get());
  const std::uint64_t size = file ? static_cast<std::uint64_t>(file->size) : 0;
  part.at = static_cast<off_t>(std::min(*offset, size));
  return {};
}

Result<void> LogReader::add_parts(const From& from) {
  // FILE.1 first: if the keeper renames between the two calls, we still have both files.
  Result<Fd> old = open_log(path_ + ".1");
  const std::optional<Seen> old_seen = old ? look_at(old->get()) : std::nullopt;
  Result<Fd> file = open_log(path_);
  if (!file) return std::move(file).error();
  const std::optional<Seen> seen = look_at(file->get());
  const bool ours =
      old_seen && seen && old_seen->written >= from.began && !old_seen->same_file(*seen);
  Part now{*std::move(file), 0};
  std::optional<Part> before;
  if (ours) before.emplace(Part{*std::move(old), 0});
  if (from.since) {
    if (Result<void> r = skip_until(*from.since, path_, now); !r) return r;
    // A file without any times left is older than one that has some.
    if (before && !skip_until(*from.since, path_ + ".1", *before)) before.reset();
  }
  if (from.tail) {
    const Result<Tail> tail = tail_of(now.file.get(), *from.tail);
    if (!tail) return tail.error();
    now.at = std::max(now.at, tail->begin);
    if (before) {
      const Result<Tail> rest = tail_of(before->file.get(), *from.tail - tail->lines);
      if (!rest) return rest.error();
      before->at = std::max(before->at, rest->begin);
    }
  }
  const launch::LogBefore gone = launch::before_of(before ? path_ + ".1" : path_);
  if (before) parts_.push_back(*std::move(before));
  parts_.push_back(std::move(now));
  if (from.tail || from.since) return {};
  gone_ = gone.bytes;
  if (gone.in_line) skip_half_a_line();
  return {};
}

// The beginning of the first line is gone, and its rest alone is useless. A line without an end in
// the first block is shown all the same.
void LogReader::skip_half_a_line() {
  Part& part = parts_.front();
  std::string block(kBlock, '\0');
  const Result<std::size_t> got = read_at(part.file.get(), block.data(), block.size(), 0);
  const std::size_t end =
      got ? std::string_view(block).substr(0, *got).find('\n') : std::string::npos;
  if (end == std::string::npos) return;
  part.at = static_cast<off_t>(end) + 1;
  gone_ += end + 1;
}

Result<std::string> LogReader::next() {
  for (;;) {
    Part& part = parts_.front();
    std::string block(kBlock, '\0');
    const Result<std::size_t> got = read_at(part.file.get(), block.data(), block.size(), part.at);
    if (!got) return got.error();
    if (*got > 0) {
      part.at += static_cast<off_t>(*got);
      block.resize(*got);
      return block;
    }
    if (parts_.size() > 1) {
      parts_.pop_front();
    } else if (last_was_replaced_) {
      follow_rename();
    } else if (!replaced()) {
      // The user truncated it: new output is at its beginning.
      const std::optional<Seen> file = look_at(part.file.get());
      if (!file || file->size >= part.at) return std::string();
      part.at = 0;
    }
  }
}

// Whether another file has the name now. Our file is then read once more: the last bytes may have
// come after we saw its end.
bool LogReader::replaced() {
  const std::optional<Seen> ours = look_at(parts_.back().file.get());
  const std::optional<Seen> there = look_at(path_);
  last_was_replaced_ = ours && there && !ours->same_file(*there);
  return last_was_replaced_;
}

// Normally our file is FILE.1 now, and FILE is next. If ours has lost that name too, FILE.1 follows
// ours.
void LogReader::follow_rename() {
  last_was_replaced_ = false;
  const std::optional<Seen> ours = look_at(parts_.back().file.get());
  Result<Fd> old = open_log(path_ + ".1");
  Result<Fd> file = open_log(path_);
  if (!file) return;  // just being renamed; the next look finds it
  const std::optional<Seen> old_seen = old ? look_at(old->get()) : std::nullopt;
  parts_.clear();
  if (ours && !ours->has_name && old_seen && old_seen->written >= ours->written)
    parts_.push_back({*std::move(old), 0});
  parts_.push_back({*std::move(file), 0});
  watch();
}

// Watches the file for new output, and its folder for the next file.
void LogReader::watch() {
  if (!watch_) {
    watch_.reset(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (!watch_) return;
    const std::string folder = base::parent_path(path_);
    (void)inotify_add_watch(watch_.get(), folder.c_str(), IN_CREATE | IN_MOVED_TO);
  }
  if (watched_file_ >= 0) (void)inotify_rm_watch(watch_.get(), watched_file_);
  const std::string ours = "/proc/self/fd/" + std::to_string(parts_.back().file.get());
  watched_file_ =
      inotify_add_watch(watch_.get(), ours.c_str(), IN_MODIFY | IN_MOVE_SELF | IN_ATTRIB);
}

void LogReader::heard() {
  std::array<char, 4096> events{};
  while (watch_ && read(watch_.get(), events.data(), events.size()) > 0) {
  }
}

}  // namespace mete::cli
