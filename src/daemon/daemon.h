// SPDX-License-Identifier: Apache-2.0
// meted put together: the loop, the store, the engine, its eyes (eyes.h), its hands (hands.h) and
// its door (front_door.h, serve::Service). Everything decided is decided elsewhere.
#pragma once

#include <string>

#include "base/result.h"
#include "config/config.h"
#include "daemon/descriptors.h"
#include "net/ready_pipe.h"

namespace mete::daemon {

struct DaemonOptions {
  std::string state_dir;
  std::string socket;
  bool system = false;
  std::string version;
  config::Config config;
  Descriptors descriptors = {};  // found when it starts
};

// Runs until it is told to stop or has had nothing to do for long. Tells `ready` once it listens,
// or why it cannot. Returns the exit code.
int run_daemon(const DaemonOptions& options, net::ReadyPipe ready);

// The command line of meted (main.cc).
int daemon_main(int argc, char** argv);

}  // namespace mete::daemon
