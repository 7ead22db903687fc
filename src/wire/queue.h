// SPDX-License-Identifier: Apache-2.0
// Requests about the queue and the daemon's answers: changed jobs, the end of a wait, quotas,
// reservations, statistics. Each document has its schema in docs/formats.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "core/job/job.h"
#include "core/order/quota.h"
#include "core/order/reservation.h"
#include "wire/job.h"

namespace mete::wire {

// The jobs that a verb (cancel, hold, release, requeue, priority) has changed:
// {"schema":"mete.jobs/1","at":T,"changed":["12_3"]}
struct ChangedDocument {
  WallTime at;
  std::vector<core::JobId> changed;
};
std::string encode(const ChangedDocument& document);
Result<ChangedDocument> decode_changed(std::string_view json);

// All jobs of a wait have ended: {"schema":"mete.wait/1","at":T,"jobs":[JOB]}
struct WaitDocument {
  WallTime at;
  std::vector<JobView> jobs;
};
std::string encode(const WaitDocument& document);
Result<WaitDocument> decode_wait(std::string_view json);

// What `mete park` and `unpark` print: {"schema":"mete.park/1","at":T,"jobs":[JOB]}
struct ParkDocument {
  WallTime at;
  std::vector<JobView> jobs;
};
std::string encode(const ParkDocument& document);

// POST /v1/jobs/ID/priority: {"priority":5}
std::string encode_priority(std::int32_t priority);
Result<std::int32_t> decode_priority(std::string_view json);

// POST /v1/quotas: {"user":"alice","cards":2,...}; an absent limit does not limit.
struct QuotaRequest {
  std::string user;  // "": the default
  core::Quota quota;
  bool operator==(const QuotaRequest&) const = default;
};
std::string encode(const QuotaRequest& request);
Result<QuotaRequest> decode_quota_request(std::string_view json);

// {"schema":"mete.quota/1","at":T,"default":{LIMITS},"users":[{"user","own":{LIMITS},"limits":{LIMITS},"used":{}}]}
struct QuotaDocument {
  WallTime at;
  core::Quota everybody;
  struct User {
    std::string user;
    core::Quota own;     // set for this user
    core::Quota limits;  // in force: own, or the default's
    core::Held held;
    std::uint32_t jobs = 0;  // unfinished
    std::optional<Bytes> disk;
    bool operator==(const User&) const = default;
  };
  std::vector<User> users;
};
std::string encode(const QuotaDocument& document);
Result<QuotaDocument> decode_quota(std::string_view json);

// POST /v1/reservations
struct ReserveRequest {
  std::string user;
  core::Request request;
  WallTime from;
  WallTime until;
  bool operator==(const ReserveRequest&) const = default;
};
std::string encode(const ReserveRequest& request);
Result<ReserveRequest> decode_reserve_request(std::string_view json);

// {"schema":"mete.reservations/1","at":T,"reservations":[{"id":"3","user","from","until","by","cards":[]}]}
struct ReservationsDocument {
  WallTime at;
  std::vector<core::Reservation> reservations;
};
std::string encode(const ReservationsDocument& document);
Result<ReservationsDocument> decode_reservations(std::string_view json);

// {"schema":"mete.stats/1",...}
struct StatsDocument {
  WallTime at;
  std::map<std::string, std::uint64_t> states;    // jobs, by the state's name
  std::map<std::string, std::uint64_t> outcomes;  // of ended jobs that are still known
  struct User {
    std::string user;
    std::uint64_t pending = 0;
    std::uint64_t running = 0;  // jobs with a grant
    std::uint64_t ended = 0;
    std::uint64_t mib_seconds = 0;  // recent GPU memory times seconds (fair share)
    bool operator==(const User&) const = default;
  };
  std::vector<User> users;
  // From submit to start, for jobs that are still known.
  struct Waits {
    std::uint64_t count = 0;
    std::optional<std::uint64_t> median_s;
    std::optional<std::uint64_t> p90_s;
    std::optional<std::uint64_t> longest_s;
    bool operator==(const Waits&) const = default;
  };
  Waits waits;
  // How many jobs with a forecast had started by then.
  struct Forecasts {
    std::uint64_t given = 0;
    std::uint64_t held = 0;
    std::uint32_t factor_milli = 1000;  // by which ranges are widened, learned from the score
    bool operator==(const Forecasts&) const = default;
  };
  Forecasts forecasts;  // "held_pct" is computed from it
};
std::string encode(const StatsDocument& document);
Result<StatsDocument> decode_stats(std::string_view json);

}  // namespace mete::wire
