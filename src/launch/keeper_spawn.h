// SPDX-License-Identifier: Apache-2.0
// Starting a keeper: a process in a session of its own that does not die with us, with its plan in
// one descriptor and, in another, the pipe on which it reports. docs/formats/keeper.md.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace mete::launch {

inline constexpr int kPlanFd = 3;
inline constexpr int kWordsFd = 4;
// Its reports, one line each.
inline constexpr const char* kSaysStarted = "started";
inline constexpr const char* kSaysTaken = "taken";      // another keeper has the claim
inline constexpr const char* kSaysNotNow = "not now ";  // and why: worth a retry
inline constexpr const char* kSaysRefused =
    "refused ";  // and why: this keeper cannot read the plan

struct SpawnKeeper {
  std::string program;
  std::string name;  // shown by ps beside it: "12_3.1"
  std::vector<std::string> environment;
};
struct SpawnedKeeper {
  pid_t pid = -1;
  Fd words;  // non-blocking
};
// busy: no process can be created at the moment. not_found, denied: the program cannot be executed.
Result<SpawnedKeeper> spawn_keeper(const SpawnKeeper& what, const std::string& plan);

// Starts a process in a session of its own that does not die with us and writes its errors into
// this file. Errors as in spawn_keeper().
Result<pid_t> spawn_detached(const std::vector<std::string>& argv,
                             const std::vector<std::string>& environment, const std::string& log);

// The variables of our own environment that a keeper needs to find the cards; none that belongs to
// a job.
std::vector<std::string> keeper_environment(const std::vector<std::string>& own);

}  // namespace mete::launch
