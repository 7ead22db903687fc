// SPDX-License-Identifier: Apache-2.0
// The space of `mete sweep`: --space, --talos, --grid and --keep together. Reads the file that the
// words name; asks no daemon.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/options.h"
#include "core/sweep/space.h"
#include "sweep/space_file.h"

namespace mete::cli {

struct SpaceInput {
  core::sweep::Space space;
  sweep::SpaceFile file;  // what else the file says; its parameters are in `space`
  std::string path;       // "": there is no file
};

class SpaceReader {
 public:
  explicit SpaceReader(const Parsed& parsed) : parsed_(parsed) {}

  Result<SpaceInput> read();
  // After an error: whether the file is wrong, not the command line.
  bool in_file() const { return in_file_; }

 private:
  Result<sweep::SpaceFile> read_file();
  Result<void> add_grid(std::vector<core::sweep::Parameter>& params) const;

  const Parsed& parsed_;
  bool in_file_ = false;
  std::string path_;
};

}  // namespace mete::cli
