// SPDX-License-Identifier: Apache-2.0
// Reading and writing of whole files. Reading is bounded by the caller; writing is atomic: after a
// crash the path holds the old bytes or the new ones, never a mixture, and a failure leaves no
// temporary file behind.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mete::base {

// All bytes of a file, including files in /proc whose size is 0. More than max_bytes is an error
// (corrupt).
Result<std::string> read_all(const std::string& path, std::size_t max_bytes = 1 << 20);

// read_all() for a file that another user may have put there: only a regular file, without
// following a link, and never waiting for a pipe or a device.
Result<std::string> read_regular(const std::string& path, std::size_t max_bytes = 1 << 20);

// Writes beside the path, syncs, renames, syncs the directory.
Result<void> write_atomic(const std::string& path, std::string_view data, mode_t mode = 0600);

// Makes what was created, renamed or removed in a folder durable.
Result<void> sync_folder(const std::string& path);

// Makes the directory and its missing parents, each with this mode; an existing one is unchanged.
Result<void> make_directories(const std::string& path, mode_t mode = 0700);

// Identifies a file while it exists or is open: numbers of removed files are reused.
struct FileId {
  dev_t device = 0;
  ino_t inode = 0;
  bool operator==(const FileId&) const = default;
};
// For the path itself (a link is not followed), or for an open file. For a bound Unix socket: by
// its path only. nullopt: there is none.
std::optional<FileId> file_id(const std::string& path);
std::optional<FileId> file_id(int descriptor);

// A missing file is no error.
Result<void> remove_file(const std::string& path);

// "a/b" for ("a", "b") and ("a/", "b").
std::string join_path(std::string_view folder, std::string_view name);
// "/a" for "/a/b", "/" for "/a", "." for "a".
std::string parent_path(std::string_view path);

// Absolute, without links; "" if there is no such file.
std::string real_path(const std::string& path);

}  // namespace mete::base
