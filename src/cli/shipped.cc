// SPDX-License-Identifier: Apache-2.0
// See shipped.h.
#include "cli/shipped.h"

#include <limits.h>
#include <unistd.h>

#include "base/file.h"

namespace mete::cli {

Result<std::string> shipped_path(const std::string& name) {
  char self[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  if (length <= 0) return Error::io("cannot find out where this program is");
  const std::string prefix = base::parent_path(
      base::parent_path(std::string_view(self, static_cast<std::size_t>(length))));
  std::string path = base::join_path(prefix, "share/mete/" + name);
  if (access(path.c_str(), F_OK) == 0) return path;
  return Error::io(name + " is missing")
      .with_evidence("looked for " + path)
      .with_hint("build or install all of mete: cmake --build --preset release");
}

}  // namespace mete::cli
