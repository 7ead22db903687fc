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
  std::string job;  // the daemon's job id; "": none, for `mete cap`
  std::uint32_t attempt = 1;
  // The request. Rank r of its processes (--procs) belongs to card r % cards; the ranks of one card
  // share it in equal parts. Without a folder the program runs in the current one.
  core::JobSpec spec;
  std::vector<core::CardShare> cards;  // in the order that the program sees; empty: no GPU
  std::string driver;                  // version
  launch::Parts parts;                 // empty without a GPU
  bool simulated = false;              // METE_SIM
  bool visible_by_index = false;
  std::vector<std::pair<std::string, std::string>> extra_environment;
  std::string readings;                     // the daemon's file; "": none
  std::string state;                        // state folder; "": launch::state_dir()
  std::optional<wire::ParkDoor> park = {};  // for a job that can be parked
  // Control groups that the caller made with the limits of cpus and ram; nullptr: made by
  // run_job().
  const launch::JobGroups* groups = nullptr;
};

// Joins the grant to the cards as the daemon described them. io: the lists differ in length.
Result<std::vector<core::CardShare>> shares_of(const std::vector<core::GrantedCard>& grant,
                                               const std::vector<core::Card>& cards);

// "8 GiB (8589934592 bytes) on card 0 (NVIDIA H200)", "no GPU".
std::string describe(const JobPlan& plan);

}  // namespace mete::runner
