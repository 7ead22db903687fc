// SPDX-License-Identifier: Apache-2.0
// Reads the log of a job as its user: from the beginning, the last lines, or continuously while it
// is written. The keeper renames FILE to FILE.1 when it is full and makes a new one, also when FILE
// was removed: reading continues over all of that, without a gap and without a repeated byte. Never
// holds more than a block in memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"

namespace mete::cli {

// Where the last `lines` lines of a file begin, and how many there are if there are fewer. Reads
// backwards from the end: only as much as needed, even of gigabytes. A last line without a newline
// counts.
struct Tail {
  off_t begin = 0;
  std::uint64_t lines = 0;
};
Result<Tail> tail_of(int fd, std::uint64_t lines);

class LogReader {
 public:
  struct From {
    std::optional<std::uint64_t> tail;  // the last lines only
    std::optional<WallTime> since;      // only what was written since (launch/log_times.h)
    WallTime began;                     // start of the job: an older FILE.1 belongs to another one
  };
  // not_found: there is no such file (yet, or any more).
  static Result<LogReader> open(std::string path, const From& from);

  // How many bytes before the first one that is read here are gone: only the end of a long log is
  // kept. Known if everything was requested.
  std::uint64_t gone() const { return gone_; }

  // The next block; "": nothing more at the moment.
  Result<std::string> next();

  // Readable when there may be more: poll it, then call heard(). -1: the system has no more
  // watches, so look from time to time.
  int descriptor() const { return watch_.get(); }
  void heard();

 private:
  struct Part {
    Fd file;
    off_t at = 0;
  };
  explicit LogReader(std::string path) : path_(std::move(path)) {}
  Result<void> add_parts(const From& from);
  void skip_half_a_line();
  static Result<void> skip_until(WallTime since, const std::string& path, Part& part);
  bool replaced();
  void follow_rename();
  void watch();

  std::string path_;
  std::deque<Part> parts_;  // in reading order; the last is being written
  std::uint64_t gone_ = 0;
  bool last_was_replaced_ = false;
  Fd watch_;
  int watched_file_ = -1;
};

}  // namespace mete::cli
