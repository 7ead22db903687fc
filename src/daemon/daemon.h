// SPDX-License-Identifier: Apache-2.0
// Assembles meted: the loop, the store, the engine, its eyes (eyes.h), its hands (hands.h) and its
// door (front_door.h, serve::Service). Decisions are made elsewhere.
#pragma once

#include <optional>
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
  Descriptors descriptors = {};  // set at the start
};

struct DaemonEnd {
  int exit_code = 0;
  // A private daemon whose program was replaced: the new program, to be executed in its place with
  // this limit on descriptors. "": the end.
  std::string successor = {};
  std::optional<core::ResourceLimit> descriptors = {};
};

// Runs until it is told to stop, has been idle for long, or its program was replaced. Tells `ready`
// once it listens, or why it cannot.
DaemonEnd run_daemon(const DaemonOptions& options, net::ReadyPipe ready);

// The command line of meted (main.cc).
int daemon_main(int argc, char** argv);

}  // namespace mete::daemon
