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

bool is_outsider(pid_t pid, const Outsiders& outsiders);

// Every living descendant of `root` (zombies are not living) without the outsiders; parents before
// their children.
// `whole`, where it is given: false when there was no descriptor or memory to look with, so that
// some may be missing.
std::vector<pid_t> descendants(pid_t root, const Outsiders& without, bool* whole = nullptr);

// The same without a look at every process of the machine, by what the kernel lists as children; at
// most `most` of them, and some may be missed while others end. Empty where it has no such lists.
std::vector<pid_t> some_descendants(pid_t root, std::size_t most);

// Every child of this process, zombies too. This process must have one thread, and no other code
// may reap its children meanwhile. Then no child is missed, however fast processes fork and end: a
// child stays in the kernel's list until this process reaps it, and the orphans of a child are in
// that list before the child itself can be reaped.
std::vector<pid_t> own_children(bool* whole = nullptr);

// The parent of a process, as of now; 0: the process is gone.
pid_t parent_of(pid_t pid);

// Whether the process has a handler for this signal.
bool catches(pid_t pid, int signal_number);

// True while the process is stopped by a signal.
bool is_stopped(pid_t pid);

// Every process, of this user or not, whose number can be seen. `whole` as above.
std::vector<pid_t> all_processes(bool* whole = nullptr);

}  // namespace mete::launch
