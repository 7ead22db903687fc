// SPDX-License-Identifier: Apache-2.0
// Notices that an upgrade has replaced a program's file. A private daemon then becomes the new
// program: its keepers would otherwise be of another version than itself, and waiting jobs would
// wait until it is restarted by hand.
#pragma once

#include <optional>
#include <string>

#include "base/file.h"

namespace mete::daemon {

class ProgramWatch {
 public:
  // Looks that must find the new file unchanged: an upgrade replaces files one after the other.
  static constexpr int kSettled = 10;

  // `path`: of a program that runs, so that its file keeps its identity. "": never replaced.
  explicit ProgramWatch(std::string path) : path_(std::move(path)), ours_(base::file_id(path_)) {}

  // Called about once a second. True: another executable file has been at the path for kSettled
  // looks. A file that is only gone is not replaced.
  bool replaced();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::optional<base::FileId> ours_;
  std::optional<base::FileId> seen_;
  int looks_ = 0;
};

}  // namespace mete::daemon
