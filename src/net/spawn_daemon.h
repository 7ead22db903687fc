// SPDX-License-Identifier: Apache-2.0
// Starts a program as a daemon: no parent, its own session, folder /, no descriptors but
// /dev/null on 0 and 1, the log on 2 and the ready pipe on 3; no signal blocked or ignored; umask
// 077.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"

namespace mete::net {

struct SpawnDaemon {
  std::vector<std::string> arguments;    // the first is the program's absolute path
  std::vector<std::string> environment;  // METE_READY_FD is added
  int log = -1;
};

// The end of the pipe on which it will report (see ready_pipe.h). A program that cannot be executed
// is reported there as well.
Result<Fd> spawn_daemon(const SpawnDaemon& what);

}  // namespace mete::net
