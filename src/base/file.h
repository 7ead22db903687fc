// SPDX-License-Identifier: Apache-2.0
// Whole files in and out. Reading is bounded by the caller; writing is atomic: after a crash the
// path holds the old bytes or the new ones, never a mixture, and a failure leaves no temporary file
// behind.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mete::base {

// All bytes of a file, also of those in /proc whose size is 0. More than max_bytes is an error
// (corrupt).
Result<std::string> read_all(const std::string& path, std::size_t max_bytes = 1 << 20);

// The same of a file that somebody else may have put there: only of a regular one, not by way of a
// link, and never waits for what a pipe or a device may say.
Result<std::string> read_regular(const std::string& path, std::size_t max_bytes = 1 << 20);

// Writes beside the path, syncs, renames, syncs the directory.
Result<void> write_atomic(const std::string& path, std::string_view data, mode_t mode = 0600);

// What was made, renamed or removed in a folder stays so.
Result<void> sync_folder(const std::string& path);

// Makes the directory and its missing parents, each with this mode; an existing one is left as it
// is.
Result<void> make_directories(const std::string& path, mode_t mode = 0700);

// Which file that is, as long as it exists or is open: numbers of removed files are used again.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileId&) const = default;
};
// Of the path itself (a link is not followed), or of an open file. Of a bound Unix socket: by its
// path only. nullopt: there is none.
std::optional<FileId> file_id(const std::string& path);
std::optional<FileId> file_id(int descriptor);

// Removing what is not there is fine.
Result<void> remove_file(const std::string& path);

// "a/b" for ("a", "b") and ("a/", "b").
std::string join_path(std::string_view folder, std::string_view name);
// "/a" for "/a/b", "/" for "/a", "." for "a".
std::string parent_path(std::string_view path);

// Absolute, without links; "" when there is no such file.
std::string real_path(const std::string& path);

}  // namespace mete::base
