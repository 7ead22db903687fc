// SPDX-License-Identifier: Apache-2.0
// Jobs between our programs: bytes in, values out. Text that is not as it should be is an Error
// (invalid, corrupt), never a guess; unknown fields are ignored. The JOB document is in
// docs/formats/ps.schema.json.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/job/job.h"
#include "core/job/others.h"
#include "core/place/place.h"
#include "wire/event.h"
#include "wire/state.h"

namespace mete::wire {

// POST /v1/jobs. The caller (uid, user) is not part of it: the socket reports it.
struct RunRequest {
  core::JobSpec spec;
  std::uint64_t runner_start_ticks = 0;  // of the process at the other end of the socket
  bool wait = true;
};
std::string encode(const RunRequest& request);
Result<RunRequest> decode_run_request(std::string_view json);

// A job as its user sees it, or as a row.
struct JobView {
  core::Job job;
  core::SharedWait wait = {};                   // while pending, or parked and to come back
  std::vector<std::optional<Bytes>> used = {};  // for each granted card, as last read
  std::optional<core::Forecast> forecast = {};  // while pending: the present one
  std::optional<WallTime> idle_since = {};      // while it runs, and is idle on its cards
  core::Remark remark = {};
  std::optional<std::uint64_t> place = {};  // in the queue, from 1; not for a runner
  bool row = false;  // of another user: core::row_of(); what is not shown is absent in JSON
};
// {"schema":"mete.ps/1","at":T,"jobs":[JOB]}
std::string encode_ps(const std::vector<JobView>& jobs, WallTime at);
Result<std::vector<JobView>> decode_ps(std::string_view json);

// Where a job that can be parked finds the movers of its cards, and its token there.
struct ParkDoor {
  std::string movers;  // a folder
  std::string token;   // 32 hexadecimal digits
  Bytes arena = {};    // the most that is kept per card
  bool operator==(const ParkDoor&) const = default;
};

// POST /v1/jobs/ID/parked: what the runner has done about its order.
struct ParkReport {
  bool parked = false;
  std::vector<Bytes> held = {};  // on each card
  Bytes moved = {};
  std::string why = {};
  bool standing = false;
  bool wakes = false;
  Bytes on_disk = {};  // the part of `moved` on disk
  bool operator==(const ParkReport&) const = default;
};
std::string encode(const ParkReport& report);
Result<ParkReport> decode_park_report(std::string_view json);

// POST /v1/jobs/ID/grow: what a job with a growing share wants of each card.
std::string encode_wanted(const std::vector<Bytes>& wanted);
Result<std::vector<Bytes>> decode_wanted(std::string_view json);

// The answer to a runner: the job, and what is needed to start it. `tag` changes with the rest: a
// client that waits sends the tag it knows.
struct RunReply {
  JobView view;
  std::string tag;
  std::uint64_t seq = 0;  // of the last event in it: the answer with the higher one is newer
  std::vector<core::Card> cards;      // for each granted card: name, type, total and capacity
  std::string driver;                 // version
  std::string readings;               // path of the file with the daemon's readings
  std::string simulated;              // the daemon's METE_SIM; "": real cards
  std::optional<ParkDoor> park = {};  // if the job can be parked
  std::string note = {};              // for its user, when it is submitted
};
std::string encode(const RunReply& reply);
Result<RunReply> decode_run_reply(std::string_view json);

// POST /v1/jobs/ID/started: the program runs, and since when.
struct StartReport {
  core::ProcessRef program;
  std::uint64_t ago_ms = 0;
};
std::string encode(const StartReport& report);
Result<StartReport> decode_start(std::string_view json);
// POST /v1/jobs/ID/ended, with the start if that was not reported before.
struct EndReport {
  core::Exit exit;
  std::optional<StartReport> start;
};
std::string encode(const EndReport& report);
Result<EndReport> decode_end(std::string_view json);

// Parts of the above, which keepers have in their plan and their record.
std::string encode(const core::JobSpec& spec);
Result<core::JobSpec> decode_spec(std::string_view json);
std::string encode(const core::Exit& exit);
Result<core::Exit> decode_exit(std::string_view json);

// {"error":{"code":"infeasible","message":…,"evidence":…,"hint":…,"exit":69}}
std::string encode_error(const Error& error, int exit_code);
// The Error that the other side sent; corrupt if it is none.
Error decode_error(std::string_view json);

}  // namespace mete::wire
