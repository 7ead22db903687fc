// SPDX-License-Identifier: Apache-2.0
// Where our own parts are: the libraries to preload and the simulated drivers, found relative to
// the running program, in the build tree (bin/, lib/, simgpu/) and when installed (bin/,
// lib/mete/1/ for grant files of version 1, lib/mete/simgpu/). Nothing is loaded here and no
// environment variable redirects it: only what was shipped with us is preloaded into the programs
// of users.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace mete::launch {

struct Parts {
  // libmete.so first, then its companions (libmete-*.so) by name: the order of LD_PRELOAD. Absolute
  // paths.
  std::vector<std::string> preload;
  // The folder of the simulated libcuda.so.1 and libnvidia-ml.so.1; "" when they are not there.
  std::string simgpu;
  // The program that measures what a context costs; "" when it is not there.
  std::string probe;
  // The parent of a detached job; "" when it is not there.
  std::string keeper;
  // The program that holds the memory of parked jobs; "" when it is not there.
  std::string mover;
  // The program that delivers one notification; "" when it is not there.
  std::string notify;
  // The program that takes processes off their cards with the driver's checkpoint; "" when it is
  // not there.
  std::string checkpoint;
  // The program that `mete selftest` runs inside a cap; "" when it is not there.
  std::string selftest;
  // The program that `mete demo` runs; "" when it is not there.
  std::string demo_program;
};

// Parts beside the running program (/proc/self/exe). io when libmete.so is missing; invalid
// when its path cannot be written in LD_PRELOAD, which has no quoting.
Result<Parts> find_parts();
// find_parts() for a program in `folder`.
Result<Parts> find_parts_from(const std::string& folder);

}  // namespace mete::launch
