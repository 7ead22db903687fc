// SPDX-License-Identifier: Apache-2.0
// See state_dir.h.
#include "launch/state_dir.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/process.h"

namespace mete::launch {

namespace {

constexpr const char* kHint =
    "set METE_STATE_DIR to a folder of your own on a local disk with space";

}  // namespace

Result<std::string> state_dir() {
  std::string path = base::variable("METE_STATE_DIR");
  std::string from = "METE_STATE_DIR";
  if (path.empty() && !base::variable("XDG_STATE_HOME").empty()) {
    path = base::join_path(base::variable("XDG_STATE_HOME"), "mete");
    from = "XDG_STATE_HOME";
  }
  if (path.empty() && !base::home_folder().empty()) {
    path = base::join_path(base::home_folder(), ".local/state/mete");
    from = "HOME";
  }
  if (path.empty() || path.front() != '/') {
    return Error::invalid("there is no state folder")
        .with_evidence(path.empty() ? "METE_STATE_DIR, XDG_STATE_HOME and HOME are not set"
                                    : from + " is not an absolute path")
        .with_hint(kHint);
  }
  return path;
}

Result<std::string> make_grants_dir(const std::string& state) {
  std::string path = base::join_path(state, "grants");
  if (Result<void> made = base::make_directories(path); !made) {
    return Error::because("the state folder cannot be used", made.error()).with_hint(kHint);
  }
  struct stat info {};
  if (lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) {
    return Error::io("the state folder cannot be used")
        .with_evidence(path + " is not a folder")
        .with_hint(kHint);
  }
  if (info.st_uid != geteuid() || (info.st_mode & 022) != 0) {
    return Error::io("the state folder cannot be trusted")
        .with_evidence(path + (info.st_uid != geteuid() ? " belongs to another user"
                                                        : " is writable by others"))
        .with_hint(kHint);
  }
  // The real path, since a grant file in use is recognised by its path in /proc/PID/maps.
  char real[PATH_MAX];
  return realpath(path.c_str(), real) != nullptr ? std::string(real) : path;
}

}  // namespace mete::launch
