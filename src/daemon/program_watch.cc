// SPDX-License-Identifier: Apache-2.0
// See program_watch.h.
#include "daemon/program_watch.h"

#include <unistd.h>

namespace mete::daemon {

bool ProgramWatch::replaced() {
  const std::optional<base::FileId> now = base::file_id(path_);
  if (!ours_ || !now || now == ours_ || access(path_.c_str(), X_OK) != 0) {
    looks_ = 0;
    return false;
  }
  looks_ = seen_ == now ? looks_ + 1 : 1;
  seen_ = now;
  return looks_ >= kSettled;
}

}  // namespace mete::daemon
