// SPDX-License-Identifier: Apache-2.0
// A small .tar.gz in memory, for `mete report`: ustar, inside of gzip with stored blocks. Not
// compressed: it is small, and this way nothing has to be linked or run for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mete::cli {

struct ArchiveFile {
  std::string name;  // at most 99 bytes
  std::string content;
};

// `time_s`: of all files, seconds since 1970.
std::string tar_gz(const std::vector<ArchiveFile>& files, std::int64_t time_s);

}  // namespace mete::cli
