// SPDX-License-Identifier: Apache-2.0
// Why a job waits: what is in its way on each card, its place in the queue, when it will start
// (forecast.h), and the smallest changes that would start it now (change.h). A pure function. It
// takes some milliseconds with ten thousand jobs in the queue, so it runs on request, not in every
// turn of the engine.
//
//   core::Sight& sight = engine.sight();
//   core::Explanation why = core::explain(engine.state(), engine.moment(), sight, *job);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/explain/change.h"
#include "core/job/state.h"

namespace mete::core {

struct Explanation {
  JobId id;
  JobState state = JobState::kPending;
  std::optional<WallTime> started;
  std::optional<WallTime> ended;
  std::optional<Outcome> outcome;
  std::optional<std::string> lost;  // why a parked job can never come back
  SharedWait wait;                  // for a pending job, or a parked one that may come back
  // The rest is for pending jobs.
  std::optional<std::uint64_t> waiting_s;
  // 1: the next. Absent: the job is not in the queue (held, --after, --begin).
  std::optional<std::uint64_t> place;
  std::optional<std::uint64_t> in_line;  // jobs in the queue
  std::optional<Forecast> forecast;

  struct CardHolder {
    JobId id;
    std::string user;
    Bytes bytes;
    bool whole = false;
    std::optional<WallTime> ends;
    bool by_limit = false;  // by its --time; otherwise learned
    bool operator==(const CardHolder&) const = default;
  };
  struct CardReserved {
    std::string user;
    WallTime from;
    WallTime until;
    Bytes bytes;
    bool operator==(const CardReserved&) const = default;
  };
  // Memory of processes outside mete, claims of other daemons, or what a job holds beyond its
  // grant.
  using CardOutside = Outside;
  enum class CardState { kOk, kDrained, kLost };
  struct OnCard {
    std::uint32_t index = 0;
    std::string uuid;
    std::string type;
    CardState state = CardState::kOk;
    std::optional<Bytes> needs;  // absent: the request is not for this card
    std::optional<Bytes> free;   // for this job; absent: unknown
    std::vector<CardHolder> holders;
    std::vector<CardOutside> outside;    // the largest first
    std::vector<CardReserved> reserved;  // for others, in the time in which the job could run
    CardWait wait;                       // kNothing: the job could be here
    bool operator==(const OnCard&) const = default;
  };
  std::vector<OnCard> cards;  // by index

  std::vector<Change> changes;  // each alone is enough
};

// `sight` must be of this state and moment: state.look(moment), or engine.sight().
Explanation explain(const State& state, const Moment& moment, Sight& sight, const Job& job);

// What would become of a job that is not submitted.
struct Trial {
  std::optional<std::vector<GrantedCard>> grant;  // if it would start now
  std::vector<JobId> parked;                      // jobs that would be parked, or give back growth
  Explanation why;                                // if it would wait
};
// An error is the one that submitting the job would give. For an array: what would become of its
// first job. The state is unchanged afterwards, but a Sight of it is no longer valid.
Result<Trial> try_out(State& state, const Moment& moment, const Submit& submit);

}  // namespace mete::core
