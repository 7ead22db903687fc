// SPDX-License-Identifier: Apache-2.0
// `mete stats --idle`: what a policy for idle jobs would have done in the past, from the log of
// events. Pure: events in, a report out; it warns, parks or ends nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/time.h"
#include "core/job/event.h"

namespace mete::cli {

// Seconds; 0: never.
struct IdlePolicy {
  std::uint64_t warn_s = 0;
  std::uint64_t notify_s = 0;
  std::uint64_t park_s = 0;
  std::uint64_t stop_s = 0;
};

struct IdleReport {
  // A time in which a job was idle on its cards.
  struct Span {
    std::string job;
    std::string user;
    std::string name;
    WallTime since;
    WallTime until;
    Bytes bytes;  // held by the job
    std::optional<WallTime> warned;
    std::optional<WallTime> notified;
    std::optional<WallTime> parked;
    std::optional<WallTime> stopped;
    std::string unparkable;         // why the policy could not have parked it
    std::uint64_t freed_mib_s = 0;  // MiB times seconds available to other jobs
  };
  WallTime at;
  WallTime from;  // the beginning of the log, or the requested time
  IdlePolicy policy;
  std::vector<Span> spans;
  std::uint64_t idle_mib_s = 0;   // of all spans, whatever the policy
  std::uint64_t freed_mib_s = 0;  // of all spans
};

// `events` in order. A span that began before `from` counts from its beginning. A span without an
// end (another daemon began to look) ends where the job was last known to be idle.
IdleReport idle_report(const std::vector<core::Event>& events, const IdlePolicy& policy,
                       WallTime from, WallTime now);

std::string idle_text(const IdleReport& report, std::optional<std::size_t> width);
// mete.idle/1
std::string idle_json(const IdleReport& report);

}  // namespace mete::cli
