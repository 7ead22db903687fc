// SPDX-License-Identifier: Apache-2.0
// When which part of a log was written, for `mete logs --since`: the lines of a program have no
// times. Also how much was written before the first byte of the file, for readers of a rotated log.
// A small file beside the log (.NAME.times) gets a line about once a second while there is output,
// less often as the log gets older, so that it stays small; docs/formats/log-times.md. It is a
// convenience: errors on writing are ignored, and what cannot be read counts as unknown.
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
  bool in_line = false;  // its last byte was not the end of a line
  bool operator==(const LogBefore&) const = default;
};
// Nothing, if it is not known.
LogBefore before_of(std::string_view log);

class LogTimes {
 public:
  explicit LogTimes(std::string_view log) : path_(times_path(log)) {}

  // Call before a write at this offset of the log. Mostly does nothing.
  void mark(WallTime now, std::uint64_t offset);
  // mark() for a new file under the log's name: if it is empty, the recorded marks belong to the
  // previous file; otherwise another program has begun it.
  void mark_new_file(WallTime now, std::uint64_t offset);
  // The log was renamed.
  void rotated(std::string_view old_log);
  // For a file that was made because the previous one was full.
  void goes_on(const LogBefore& before);
  // The recorded marks belong to another file, which had this name.
  void forget();

 private:
  std::string path_;
  std::optional<WallTime> began_;
  std::optional<WallTime> marked_;  // the last time
  std::int64_t holds_ms_ = 0;       // no other mark is needed for this long
};

// The offset in the log where output of this time or later begins: never a byte too few, at most
// about a second too many (a minute for a log that is days old). At or beyond the size: there is
// none. not_found: nothing is known.
Result<std::uint64_t> offset_since(std::string_view log, WallTime since);

}  // namespace mete::launch
