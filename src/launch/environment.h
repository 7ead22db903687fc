// SPDX-License-Identifier: Apache-2.0
// The environment of a job. Pure: variables in, variables out; every variable that is not named
// here is passed on unchanged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace mete::launch {

struct JobEnvironment {
  std::string job;
  std::uint32_t attempt = 1;
  std::string token;       // core::to_string of the runner: METE_JOB_TOKEN; "": no daemon
  std::string grant_path;  // "": no GPU; then there are no cards and nothing is preloaded
  // The cards in the order in which the program sees them: what CUDA_VISIBLE_DEVICES lists (with
  // --visible index their numbers, otherwise their UUIDs), and their UUIDs.
  std::vector<std::string> visible;
  std::vector<std::string> uuids;
  Bytes limit;                       // of one process, on the card where it is smallest
  bool parkable = false;             // METE_PARKABLE: the meter puts its gates in place
  std::vector<std::string> preload;  // our libraries, in order
  std::string simgpu;                // with METE_SIM: the folder of the simulated drivers
  std::vector<std::pair<std::string, std::string>> extra;  // --env, before our variables
  // One of several processes of the job (--procs), with the variables that torchrun sets.
  struct Rank {
    std::uint32_t rank = 0;
    std::uint32_t world = 1;
    std::uint32_t part = 0;  // of the grant
    std::string port;        // MASTER_PORT
  };
  std::optional<Rank> rank;
};

// "NAME=VALUE" lines in, "NAME=VALUE" lines out, in the original order.
std::vector<std::string> job_environment(const std::vector<std::string>& current,
                                         const JobEnvironment& job);

// "K=V" of --env. Variables that the grant decides are refused, since setting them would be
// ignored.
Result<std::pair<std::string, std::string>> parse_env(const std::string& text);

// Our libraries go first, but after a sanitizer's runtime, which refuses to run second; existing
// entries stay, once each.
std::string merge_preload(const std::string& current, const std::vector<std::string>& ours);

}  // namespace mete::launch
