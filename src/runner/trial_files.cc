// SPDX-License-Identifier: Apache-2.0
// See trial_files.h. AppendedFile opens the path for each read, so that a file that was replaced is
// found. The size alone does not show that a file was written anew: the last bytes that were read
// must still be where they were. CurveFile collects lines and appends them in one write; after a
// write that failed half-way it cuts the file back to its last whole line.
#include "runner/trial_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "abi/grant.h"
#include "wire/json_text.h"

namespace mete::runner {

namespace {

bool is_equal(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

Result<Fd> make_empty(const std::string& path) {
  // A folder in its place is removed only if it is empty.
  if (unlink(path.c_str()) != 0 && errno == EISDIR) (void)rmdir(path.c_str());
  return base::open_fd(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
}

// Up to `most` bytes; fewer at the end of the file, or if it cannot be read.
std::string read_from(const Fd& file, std::uint64_t offset, std::size_t most) {
  std::string bytes(most, '\0');
  std::size_t size = 0;
  while (size < most) {
    const ssize_t got =
        pread(file.get(), bytes.data() + size, most - size, static_cast<off_t>(offset + size));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace

Result<void> make_file(const std::string& path, std::string_view content) {
  const Result<Fd> file = make_empty(path);
  if (!file) return file.error();
  if (base::write_all(file->get(), content)) return {};
  const int error = errno;
  (void)unlink(path.c_str());
  return Error::from_errno("write " + path, error);
}

// ---- METE_METRICS ------------------------------------------------------------------------------

AppendedFile::Piece AppendedFile::read() {
  Piece piece;
  const Result<Fd> file = base::open_fd(path_, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  struct stat info {};
  if (!file || fstat(file->get(), &info) != 0 || !S_ISREG(info.st_mode)) return piece;
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size == size_ && size == offset_ && is_equal(info.st_mtim, written_)) return piece;
  size_ = size;
  written_ = info.st_mtim;
  piece.again = size < offset_ || read_from(*file, offset_ - tail_.size(), tail_.size()) != tail_;
  if (piece.again) {
    offset_ = 0;
    tail_.clear();
  }
  const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(kMaxPiece, size - offset_));
  piece.bytes = read_from(*file, offset_, most);
  offset_ += piece.bytes.size();
  piece.left = piece.bytes.size() == most ? size - offset_ : 0;
  tail_ += piece.bytes.substr(piece.bytes.size() - std::min(kTail, piece.bytes.size()));
  tail_.erase(0, tail_.size() - std::min(kTail, tail_.size()));
  return piece;
}

// ---- the curve ---------------------------------------------------------------------------------

std::string line_of(const core::sweep::TrialPoint& point) {
  std::string line = "{";
  const auto member = [&](std::string_view name) {
    if (line.size() > 1) line += ',';
    wire::append_json_string(line, name);
    line += ':';
  };
  if (point.step) {
    member("step");
    line += std::to_string(*point.step);
  }
  for (const core::sweep::Metric& metric : point.metrics) {
    member(metric.name);
    char digits[32];
    if (std::isfinite(metric.value))
      line.append(digits, std::to_chars(digits, digits + sizeof digits, metric.value).ptr);
    else
      line += "null";
  }
  return line += "}\n";
}

CurveFile::CurveFile(std::string path) : path_(std::move(path)) {
  Result<Fd> file = make_empty(path_);
  if (file)
    file_ = *std::move(file);
  else
    why_ = file.error().message;
}

void CurveFile::lose(std::string_view lines, const std::string& why) {
  lost_ += static_cast<std::uint64_t>(std::count(lines.begin(), lines.end(), '\n'));
  if (why_.empty()) why_ = why;
}

// By the hash: each second line could be each line of one metric.
bool CurveFile::is_kept(std::string_view line) const {
  if (thinned_ == 0) return true;
  std::uint64_t hash = abi::fnv1a(line.data(), line.size());
  hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15;
  return (hash >> 32 & ((1u << thinned_) - 1)) == 0;
}

void CurveFile::add(const core::sweep::TrialPoint& point) {
  const std::string line = line_of(point);
  if (!is_kept(line)) return;
  buffer_ += line;
  if (buffer_.size() >= kBuffer) flush();
}

void CurveFile::flush() {
  if (buffer_.empty()) return;
  if (file_ && bytes_ + buffer_.size() > kMaxBytes) {
    if (const Result<void> done = thin(); !done) {
      file_.reset();
      lose("", done.error().message);
    }
  }
  const std::string lines = std::exchange(buffer_, {});
  if (!file_) return lose(lines, "");
  if (base::write_at(file_.get(), lines, bytes_)) {
    bytes_ += lines.size();
    return;
  }
  lose(lines, Error::from_errno("write " + path_, errno).message);
  (void)!ftruncate(file_.get(), static_cast<off_t>(bytes_));
}

// Readers see the old file or the new one. Nothing is synced: a curve that a crash of the machine
// takes away is no result.
Result<void> CurveFile::thin() {
  const std::string all = read_from(file_, 0, bytes_) + buffer_;
  if (thinned_ < 31) ++thinned_;
  std::string kept;
  kept.reserve(all.size() / 2 + kBuffer);
  for (std::size_t at = 0, end = 0; (end = all.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string_view line = std::string_view(all).substr(at, end + 1 - at);
    if (is_kept(line)) kept += line;
  }
  if (kept.size() > kMaxBytes) return Error::exhausted(path_ + " is full");
  const std::string fresh = path_ + ".new";
  Result<Fd> file = make_empty(fresh);
  if (!file) return std::move(file).error();
  if (!base::write_at(file->get(), kept, 0) || rename(fresh.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    (void)unlink(fresh.c_str());
    return Error::from_errno("thin " + path_, error);
  }
  file_ = *std::move(file);
  bytes_ = kept.size();
  buffer_.clear();
  return {};
}

}  // namespace mete::runner
