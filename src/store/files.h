// SPDX-License-Identifier: Apache-2.0
// The store's files in the state folder: made for their owner alone, and used only when they are.
// The store decides what runs with which grant, so nobody else may be able to write it.
#pragma once

#include <string>

#include "base/result.h"

namespace mete::store {

struct Files {
  std::string folder;    // without symbolic links
  std::string database;  // FOLDER/meted.db; exists, empty if it is new
  bool unclean = false;  // the last one to use it was killed: its log is still there
};

// Without symbolic links. Made (0700) where it is missing; denied: somebody else's, or writable by
// others.
Result<std::string> trusted_folder(const std::string& folder);

// Makes the folder (0700) and an empty database file (0600) where they are missing. denied: a
// symbolic link, somebody else's, or writable by others.
Result<Files> prepare_files(const std::string& folder);

// Room that is set aside for a full disk: FOLDER/ballast, really allocated. When the disk is full
// it is freed, so that the ends of jobs can still be recorded.
class Ballast {
 public:
  static constexpr long kBytes = 1 << 20;

  explicit Ballast(const std::string& folder);
  // True: there was one, and its room is free now.
  bool free();
  // True: it is there, whole. False: no room for it; nothing is left behind.
  bool restore();

 private:
  std::string path_;
};

}  // namespace mete::store
