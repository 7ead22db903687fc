// SPDX-License-Identifier: Apache-2.0
// A job whose cards are decided, ready to be run: by `mete cap` (alone), `mete run` (as the daemon
// decided) and the keeper of a detached job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/job/job.h"
#include "core/request/resolve.h"
#include "launch/job_groups.h"
#include "launch/parts.h"
#include "wire/job.h"

namespace mete::runner {

struct JobPlan {
  std::string job;  // the daemon's number; "": none, a cap alone
  std::uint32_t attempt = 1;
  // What was asked for. Of its processes (--procs) rank r is meant for card r % cards; the ranks of
  // one card have equal parts of it. Without a folder the program is run in this one.
  core::JobSpec spec;
  std::vector<core::CardShare> cards;  // as the program shall see them; empty: no GPU
  std::string driver;                  // its version
  launch::Parts parts;                 // empty without a GPU
  bool simulated = false;              // METE_SIM
  bool visible_by_index = false;
  std::vector<std::pair<std::string, std::string>> extra_environment;
  std::string readings;                     // the daemon's file; "": none
  std::string state;                        // the folder; "": as launch::state_dir() says
  std::optional<wire::ParkDoor> park = {};  // of a job that can be parked
  // Made by the caller, with what cpus and ram ask for; nullptr: to be made here.
  const launch::JobGroups* groups = nullptr;
};

// What the daemon granted on the cards that it described. io: they are not of one length.
Result<std::vector<core::CardShare>> shares_of(const std::vector<core::GrantedCard>& grant,
                                               const std::vector<core::Card>& cards);

// "8 GiB (8589934592 bytes) on card 0 (NVIDIA H200)", "no GPU".
std::string describe(const JobPlan& plan);

}  // namespace mete::runner
