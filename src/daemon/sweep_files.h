// SPDX-License-Identifier: Apache-2.0
// results.csv of each sweep: a row is appended for each trial that is over, with the rights of the
// sweep's user. The state is the truth, and the file a copy for people and scripts: it is never
// read for a decision. A file that was edited, or that has a torn row, is kept under another name
// and written anew. A full disk, or a folder that the user has taken away, costs rows that are
// written later; never the sweep.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"
#include "core/job/sweeps.h"

namespace mete::daemon {

class SweepFiles {
 public:
  // `folder_of`: the files of a user. `as_user`: we are root, and become the user for each access.
  // `begun`: when the daemon began.
  SweepFiles(std::function<std::string(std::uint32_t uid)> folder_of, bool as_user, WallTime begun,
             std::function<void(const std::string&)> log)
      : folder_of_(std::move(folder_of)), as_user_(as_user), begun_(begun), log_(std::move(log)) {}

  // Writes what is missing, bounded. Call about once a second, and before the end.
  void write(const core::Sweeps& sweeps);
  // Once for each sweep that has just ended: its file is whole when users are told of the end. Call
  // after each turn; cheap if no sweep has ended.
  void write_ended(const core::Sweeps& sweeps);

 private:
  struct File {
    std::uint64_t rows = 0;   // written
    std::uint64_t bytes = 0;  // of the file
    bool checked = false;
    std::optional<WallTime> ended = {};     // the end that write_ended() knows
    std::vector<std::string> metrics = {};  // the columns
    std::string trouble = {};               // last logged
  };
  void try_to_write(const core::sweep::Sweep& sweep, File& file);
  Result<void> write_one(const core::sweep::Sweep& sweep, File& file);
  Result<void> begin(const core::sweep::Sweep& sweep, File& file, const std::string& folder);
  Result<void> append(const core::sweep::Sweep& sweep, File& file, const std::string& path);

  std::function<std::string(std::uint32_t)> folder_of_;
  bool as_user_;
  WallTime begun_;
  std::function<void(const std::string&)> log_;
  std::map<std::uint64_t, File> files_;  // by the number of the sweep
  std::uint64_t compared_ = 0;           // the last of the old ones
};

}  // namespace mete::daemon
