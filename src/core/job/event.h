// SPDX-License-Identifier: Apache-2.0
// What has happened, once decided: recorded before anything is done about it, and enough to make
// the same state again by replay. Values only; how they are written is wire/event.h.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/job/job.h"

namespace mete::core {

struct JobSubmitted {
  JobId id;
  JobSpec spec;
  std::optional<ProcessRef> runner;
  bool operator==(const JobSubmitted&) const = default;
};
// The grant is held from here on.
struct JobGranted {
  JobId id;
  std::vector<GrantedCard> cards;
  bool operator==(const JobGranted&) const = default;
};
struct JobStarted {
  JobId id;
  ProcessRef program;
  std::uint64_t ago_ms = 0;  // before this was recorded
  bool operator==(const JobStarted&) const = default;
};
// It is being ended: by its user, or because nobody is left who would wait for it.
struct JobStopping {
  JobId id;
  Outcome why = Outcome::kCancelled;
  bool operator==(const JobStopping&) const = default;
};
// Its last process is gone, and its grant is free.
struct JobEnded {
  JobId id;
  Outcome outcome = Outcome::kOk;
  std::optional<Exit> exit;
  bool operator==(const JobEnded&) const = default;
};
struct CardLost {
  std::string uuid;
  bool operator==(const CardLost&) const = default;
};
struct CardBack {
  std::string uuid;
  bool operator==(const CardBack&) const = default;
};

using Happened =
    std::variant<JobSubmitted, JobGranted, JobStarted, JobStopping, JobEnded, CardLost, CardBack>;

struct Event {
  std::uint64_t seq = 0;  // without gaps, from 1
  WallTime at;
  Happened what;
  bool operator==(const Event&) const = default;
};

// "job.submitted", "card.lost", ...
std::string_view type_of(const Happened& what);

}  // namespace mete::core
