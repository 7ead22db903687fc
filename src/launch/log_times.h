// SPDX-License-Identifier: Apache-2.0
// When which part of a log was written, for `mete logs --since`: lines of a program have no times.
// And how much had been written before it began, for who reads what is left of a long one.
// A small file beside the log (.NAME.times) that is added to about once a second while there is
// output, less often the longer it goes on, so that it stays small; docs/formats/log-times.md. It
// is a convenience: what cannot be written is not written, and what cannot be read is not known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

namespace mete::launch {

// "/a/.b.log.times" for "/a/b.log".
std::string times_path(std::string_view log);

// What was written before the first byte of a file.
struct LogBefore {
  std::uint64_t bytes = 0;
  bool in_line = false;  // the last of them was not the end of a line
  bool operator==(const LogBefore&) const = default;
};
// Nothing, as far as is known.
LogBefore before_of(std::string_view log);

class LogTimes {
 public:
  explicit LogTimes(std::string_view log) : path_(times_path(log)) {}

  // Before something is written at this offset of the log. Mostly does nothing.
  void mark(WallTime now, std::uint64_t offset);
  // The same for a file that has the log's name from now on: if it is empty, what was known is of
  // the one before it; else another program has begun it.
  void mark_new_file(WallTime now, std::uint64_t offset);
  // The log was renamed.
  void rotated(std::string_view old_log);
  // Of a file that was made because the one before it was full.
  void goes_on(const LogBefore& before);
  // What is known is of another file, which had this name.
  void forget();

 private:
  std::string path_;
  std::optional<WallTime> began_;
  std::optional<WallTime> marked_;  // the last time
  std::int64_t holds_ms_ = 0;       // so long no other mark is needed
};

// Where in the log begins what was written at that time or later: never a byte too few, at most
// about a second too many (of a log that is days old, a minute). Its size or more: nothing was.
// not_found: nothing is known.
Result<std::uint64_t> offset_since(std::string_view log, WallTime since);

}  // namespace mete::launch
