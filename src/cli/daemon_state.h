// SPDX-License-Identifier: Apache-2.0
// `mete daemon reload|backup|restore|repair`: what the daemon works with. Each returns the exit
// code.
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"
#include "runner/daemon_client.h"

namespace mete::cli {

// Has the daemon read its configuration again, and says what has changed.
int reload_daemon(runner::DaemonClient& client, const Output& output);

struct StateFile {
  std::string file;
  const std::string* state_dir = nullptr;  // nullptr: that of the daemon that would be asked
  bool force = false;
  bool dry_run = false;
};
// Copies the state: the daemon does it, or where none runs, meted's own program.
int backup_daemon(const StateFile& what, const Output& output);
// Puts a copy in place of the state. Refuses while a daemon runs.
int restore_daemon(const StateFile& what, const Output& output);
int repair_daemon(const std::string* state_dir, const Output& output);

}  // namespace mete::cli
