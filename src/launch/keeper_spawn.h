// SPDX-License-Identifier: Apache-2.0
// Starting a keeper: a process in a session of its own that does not die with us, with its plan in
// one descriptor and, in another, the pipe by which it says what it does. docs/formats/keeper.md.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace mete::launch {

inline constexpr int kPlanFd = 3;
inline constexpr int kWordsFd = 4;
// What it says, a line each.
inline constexpr const char* kSaysStarted = "started";
inline constexpr const char* kSaysTaken = "taken";      // another has the claim
inline constexpr const char* kSaysNotNow = "not now ";  // and why: worth another try
inline constexpr const char* kSaysRefused =
    "refused ";  // and why: this keeper cannot read the plan

struct SpawnKeeper {
  std::string program;
  std::string name;  // what ps shows beside it: "12_3.1"
  std::vector<std::string> environment;
};
struct SpawnedKeeper {
  pid_t pid = -1;
  Fd words;  // non-blocking
};
// busy: no process can be made at the moment. not_found, denied: the program cannot be executed.
Result<SpawnedKeeper> spawn_keeper(const SpawnKeeper& what, const std::string& plan);

// A process in a session of its own that does not die with us, which says what goes wrong into this
// file. The errors are spawn_keeper's.
Result<pid_t> spawn_detached(const std::vector<std::string>& argv,
                             const std::vector<std::string>& environment, const std::string& log);

// Of our own environment what a keeper needs to find the cards; nothing that says that it is of
// some job.
std::vector<std::string> keeper_environment(const std::vector<std::string>& own);

}  // namespace mete::launch
