// SPDX-License-Identifier: Apache-2.0
// The store's files in the state folder: accessible only to their owner, and used only then. The
// store decides which job runs with which grant, so no other user may be able to write it.
#pragma once

#include <string>

#include "base/result.h"

namespace mete::store {

struct Files {
  std::string folder;    // without symbolic links
  std::string database;  // FOLDER/meted.db; exists, empty if it is new
  bool unclean = false;  // the last process that used it was killed: its log is still there
};

// Without symbolic links. Made (0700) if it is missing; denied: of another user, or writable by
// others.
Result<std::string> trusted_folder(const std::string& folder);

// Makes the folder (0700) and an empty database file (0600) if they are missing. denied: a symbolic
// link, of another user, or writable by others.
Result<Files> prepare_files(const std::string& folder);

// Space that is set aside for a full disk: FOLDER/ballast, really allocated. When the disk is full
// it is freed, so that the ends of jobs can still be recorded.
class Ballast {
 public:
  static constexpr long kBytes = 1 << 20;

  explicit Ballast(const std::string& folder);
  // True: there was one, and its space is free now.
  bool free();
  // True: it is there, whole. False: no space for it; nothing is left behind.
  bool restore();

 private:
  std::string path_;
};

}  // namespace mete::store
