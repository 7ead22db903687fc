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
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "core/job/sweeps.h"

namespace mete::daemon {

class SweepFiles {
 public:
  // `folder_of`: the files of a user. `as_user`: we are root, and become the user for each access.
  SweepFiles(std::function<std::string(std::uint32_t uid)> folder_of, bool as_user,
             std::function<void(const std::string&)> log)
      : folder_of_(std::move(folder_of)), as_user_(as_user), log_(std::move(log)) {}

  // Writes what is missing, bounded. Call about once a second, and before the end.
  void write(const core::Sweeps& sweeps);

 private:
  struct File {
    std::uint64_t rows = 0;   // written
    std::uint64_t bytes = 0;  // of the file
    bool checked = false;
    std::vector<std::string> metrics = {};  // the columns
    std::string trouble = {};               // last logged
  };
  Result<void> write_one(const core::sweep::Sweep& sweep, File& file);
  Result<void> begin(const core::sweep::Sweep& sweep, File& file, const std::string& folder);
  Result<void> append(const core::sweep::Sweep& sweep, File& file, const std::string& path);

  std::function<std::string(std::uint32_t)> folder_of_;
  bool as_user_;
  std::function<void(const std::string&)> log_;
  std::map<std::uint64_t, File> files_;  // by the number of the sweep
};

}  // namespace mete::daemon
