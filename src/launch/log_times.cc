// SPDX-License-Identifier: Apache-2.0
// See log_times.h.
#include "launch/log_times.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>

#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"

namespace mete::launch {

namespace {

constexpr std::int64_t kLeastMs = 1'000;
constexpr std::int64_t kParts = 3'600;  // a mark holds for 1/3,600 of the log's age
constexpr std::size_t kMaxBytes = 16 << 20;

struct Mark {
  std::uint64_t ms = 0;
  std::uint64_t offset = 0;
  std::uint64_t holds_ms = 0;
};

// "1763186400000 4096 1000": bytes behind this offset were written then or later, and bytes before
// the next mark no more than a second later.
std::optional<Mark> parse_mark(std::string_view line) {
  const std::vector<std::string_view> words = base::split(line, ' ');
  if (words.size() != 3) return std::nullopt;
  const Result<std::uint64_t> ms = base::parse_uint(words[0]);
  const Result<std::uint64_t> offset = base::parse_uint(words[1]);
  const Result<std::uint64_t> holds = base::parse_uint(words[2]);
  constexpr std::uint64_t kMost = 1ull << 60;
  if (!ms || !offset || !holds || *ms > kMost || *holds > kMost) return std::nullopt;
  return Mark{*ms, *offset, *holds};
}

// "before 131072 middle": this many bytes were written before this file, and it begins in the
// middle of a line.
constexpr std::string_view kBefore = "before";
constexpr std::string_view kMiddle = "middle";
constexpr std::string_view kBegin = "begin";

void append_line(const std::string& path, const std::string& line) {
  // O_NOFOLLOW: in a folder that others may write to, a link must not lead to another file.
  const Result<Fd> file =
      base::open_fd(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (!file || write(file->get(), line.data(), line.size()) < 0) return;  // then it is not recorded
}

}  // namespace

std::string times_path(std::string_view log) {
  const std::size_t slash = log.rfind('/');
  const std::size_t name = slash == std::string_view::npos ? 0 : slash + 1;
  return std::string(log.substr(0, name)) + "." + std::string(log.substr(name)) + ".times";
}

void LogTimes::mark(WallTime now, std::uint64_t offset) {
  // A clock that was set back is marked at once.
  if (marked_ && now >= *marked_ && now.ms - marked_->ms < holds_ms_) return;
  if (!began_ || now < *began_) began_ = now;
  marked_ = now;
  holds_ms_ = std::max(kLeastMs, (now.ms - began_->ms) / kParts);
  append_line(path_, std::to_string(now.ms) + " " + std::to_string(offset) + " " +
                         std::to_string(holds_ms_) + "\n");
}

void LogTimes::mark_new_file(WallTime now, std::uint64_t offset) {
  if (offset == 0) (void)unlink(path_.c_str());
  began_.reset();
  marked_.reset();
  mark(now, offset);
}

void LogTimes::rotated(std::string_view old_log) {
  (void)std::rename(path_.c_str(), times_path(old_log).c_str());
}

void LogTimes::goes_on(const LogBefore& before) {
  append_line(path_, std::string(kBefore) + " " + std::to_string(before.bytes) + " " +
                         std::string(before.in_line ? kMiddle : kBegin) + "\n");
}

void LogTimes::forget() { (void)unlink(path_.c_str()); }

LogBefore before_of(std::string_view log) {
  const Result<std::string> text = base::read_regular(times_path(log), kMaxBytes);
  if (!text) return {};
  for (const std::string_view line : base::split(*text, '\n')) {
    const std::vector<std::string_view> words = base::split(line, ' ');
    if (words.size() != 3 || words[0] != kBefore) continue;
    if (const Result<std::uint64_t> bytes = base::parse_uint(words[1]); bytes)
      return {*bytes, words[2] == kMiddle};
  }
  return {};
}

Result<std::uint64_t> offset_since(std::string_view log, WallTime since) {
  // The file is in a folder of the job's user, and root reads it too.
  const Result<std::string> text = base::read_regular(times_path(log), kMaxBytes);
  if (!text) return text.error();
  const std::uint64_t wanted = since.ms < 0 ? 0 : static_cast<std::uint64_t>(since.ms);
  bool known = false;
  for (const std::string_view line : base::split(*text, '\n')) {
    const std::optional<Mark> mark = parse_mark(line);
    if (mark && mark->ms + mark->holds_ms > wanted) return mark->offset;
    known = known || mark;
  }
  if (!known) return Error::not_found("there are no times in " + times_path(log));
  return std::numeric_limits<std::uint64_t>::max();
}

}  // namespace mete::launch
