// SPDX-License-Identifier: Apache-2.0
// The log file for a job's output. Bounded: output beyond the limit goes to a new file, and one old
// file is kept (FILE.1). A file that is removed or moved away is made again. If the disk is full,
// bytes are dropped and counted, so that the job never waits for room; once there is room, a line
// says how many were lost. A small file beside it records when what was written (log_times.h).
//
// Opened with the rights of the calling process, so as the job's user: links are followed as far as
// that user may.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"
#include "launch/log_times.h"

namespace mete::launch {

struct LogPlace {
  std::string path;
  Bytes limit;         // of one file; zero: none
  mode_t mode = 0600;  // of a file that is made
};

class JobLog {
 public:
  // Existing content stays, and output is appended. A regular file or /dev/null; anything else (a
  // FIFO would wait for its reader, a device might do anything) is invalid and untouched.
  static Result<JobLog> open(const LogPlace& place);

  // Never fails and never waits for room.
  void write(std::string_view bytes);
  // A line of our own: "mete: ...", never in the middle of another line.
  void say(std::string_view text);

  // Bytes that could not be written, in total.
  std::uint64_t lost() const { return lost_; }
  // The space that it takes on the disk now, with the old file.
  Bytes size() const;
  // The path, links resolved.
  const std::string& path() const { return place_.path; }

 private:
  struct Opened {
    Fd file;
    bool null = false;  // /dev/null
  };
  JobLog(LogPlace place, Opened opened);
  static Result<Opened> open_file(const LogPlace& place);

  // Makes room: a new file if the old one is full, moved away or removed. False: there is none.
  bool has_place_for(std::size_t more);
  void open_again();
  std::size_t append(std::string_view bytes);
  void drop(std::size_t count, int error);

  LogPlace place_;
  LogTimes times_;
  Fd file_;
  std::uint64_t before_ = 0;  // bytes written before this file
  bool null_ = false;
  bool line_begins_ = true;
  std::uint64_t lost_ = 0;
  std::uint64_t unsaid_ = 0;  // the part of `lost_` that no line in the file mentions yet
  int lost_by_ = 0;           // errno
};

}  // namespace mete::launch
