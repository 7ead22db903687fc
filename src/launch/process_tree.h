// SPDX-License-Identifier: Apache-2.0
// Which process descends from which, read from /proc. A snapshot: processes start and end
// meanwhile.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace mete::launch {

// Processes that descend from a job's launcher without belonging to the job, and their descendants.
struct Outsiders {
  std::vector<pid_t> pids;
  std::string program;  // absolute path of an executable; "": none
};

bool is_outsider(pid_t pid, const Outsiders& outsiders);

// Every living descendant of `root` (zombies are not living) without the outsiders; parents before
// their children. `whole`, if given, becomes false when there was no descriptor or memory to look
// with, so that some may be missing.
std::vector<pid_t> descendants(pid_t root, const Outsiders& without, bool* whole = nullptr);

// Some descendants, by the kernel's lists of children and without a look at every process of the
// machine; at most `most`, and some may be missed while others end. Empty if the kernel has no such
// lists.
std::vector<pid_t> some_descendants(pid_t root, std::size_t most);

// Every child of this process, zombies too. This process must have one thread, and no other code
// may reap its children meanwhile. Then no child is missed, however fast processes fork and end: a
// child stays in the kernel's list until this process reaps it, and the orphans of a child are in
// that list before the child itself can be reaped.
std::vector<pid_t> own_children(bool* whole = nullptr);

// The current parent of a process; 0: the process is gone.
pid_t parent_of(pid_t pid);

// Whether the process has a handler for this signal.
bool catches(pid_t pid, int signal_number);

// True while the process is stopped by a signal.
bool is_stopped(pid_t pid);

// Every visible process, of this user or not. `whole` as above.
std::vector<pid_t> all_processes(bool* whole = nullptr);

}  // namespace mete::launch
