// SPDX-License-Identifier: Apache-2.0
// What a keeper gets: everything it needs to run one attempt of a detached job by itself, passed
// through a descriptor, never as arguments. The Exit that it leaves is in wire/job.h; the bytes are
// in docs/formats/keeper.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "core/job/job.h"
#include "wire/job.h"

namespace mete::wire {

struct KeeperPlan {
  core::JobId job;
  std::uint32_t attempt = 1;
  core::JobSpec spec;  // `detached` is present
  std::vector<core::GrantedCard> grant = {};
  std::vector<core::Card> cards = {};  // as in RunReply
  std::string driver = {};             // version
  std::string readings = {};           // path of the file with the daemon's readings
  std::string simulated = {};          // METE_SIM; "": real cards

  std::string keep = {};       // the folder of the records
  std::string state = {};      // of the job's user: logs, grants, scripts, terminals
  bool as_owner = false;       // the daemon is root: the keeper becomes the job's user
  std::string log = {};        // patterns filled in
  std::string err = {};        // "": the log
  Bytes log_limit = {};        // per file; zero: none
  std::uint64_t grace_ms = 0;  // between TERM and KILL

  std::vector<std::string> preload = {};  // our libraries; empty without cards
  std::string simgpu = {};                // the simulated drivers
  std::string probe = {};                 // measures what a context costs

  std::optional<ParkDoor> park = {};  // if the job can be parked
  std::string socket = {};            // the daemon's, which sends orders
  std::string checkpoint = {};        // the program that parks by the driver

  std::string environment = {};  // "NAME=VALUE", each ended by NUL
  std::string script = {};       // the text of the script, if the spec has one
};
std::string encode(const KeeperPlan& plan);
Result<KeeperPlan> decode_keeper_plan(std::string_view bytes);

std::vector<std::string> environment_lines(std::string_view blob);

// Where the output of a job goes: --log, with %j (the job: 12_3), %A (its number), %a (its element;
// 0: not in an array), %x (its name), %u (its user) and %% filled in; without --log, JOB.log in
// `logs`. Names become file names ('/' is '_'). An unknown letter is unchanged.
std::string log_path(const core::JobSpec& spec, core::JobId id, std::string_view logs);
// Where --err goes; "": the log.
std::string error_log_path(const core::JobSpec& spec, core::JobId id);

// The socket of a job with --tty, below its user's state folder: STATE/terminals/12_3.1.
std::string terminal_path(std::string_view state, core::JobId id, std::uint32_t attempt);

}  // namespace mete::wire
