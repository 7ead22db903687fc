// SPDX-License-Identifier: Apache-2.0
// Who descends from whom, by reading /proc. A snapshot: processes come and go while it is taken.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace mete::launch {

// Processes that are nobody's job though they descend from its launcher, and all that descends from
// them.
struct Outsiders {
  std::vector<pid_t> pids;
  std::string program;  // absolute path of an executable; "": none
};

// Every living descendant of `root` (zombies are not living) without the outsiders; parents before
// their children.
std::vector<pid_t> descendants(pid_t root, const Outsiders& without);

// True while the process is stopped by a signal.
bool is_stopped(pid_t pid);

// Every process, of this user or not, whose number can be seen.
std::vector<pid_t> all_processes();

}  // namespace mete::launch
