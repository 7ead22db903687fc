// SPDX-License-Identifier: Apache-2.0
// Why a job waits: what is in its way card by card, its place in line, when it will start
// (forecast.h), and the smallest changes that would start it now (change.h). A pure function; takes
// some milliseconds on a line of ten thousand jobs, so it is for those who ask, not for every turn.
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
  SharedWait wait;                  // of a pending job, or a parked one that may come back
  // The rest is of a pending job.
  std::optional<std::uint64_t> waiting_s;
  // 1: the next. Absent: it does not stand in line (held, --after, --begin).
  std::optional<std::uint64_t> place;
  std::optional<std::uint64_t> in_line;  // how many stand there
  std::optional<Forecast> forecast;

  struct CardHolder {
    JobId id;
    std::string user;
    Bytes bytes;
    bool whole = false;
    std::optional<WallTime> ends;
    bool by_limit = false;  // its --time says so; otherwise learned
    bool operator==(const CardHolder&) const = default;
  };
  struct CardReserved {
    std::string user;
    WallTime from;
    WallTime until;
    Bytes bytes;
    bool operator==(const CardReserved&) const = default;
  };
  // Held by processes outside mete, claimed by other daemons, or held by a job beyond its grant.
  using CardOutside = Outside;
  enum class CardState { kOk, kDrained, kLost };
  struct OnCard {
    std::uint32_t index = 0;
    std::string uuid;
    std::string type;
    CardState state = CardState::kOk;
    std::optional<Bytes> needs;  // absent: the request is not for this card
    std::optional<Bytes> free;   // for this job; absent: not known
    std::vector<CardHolder> holders;
    std::vector<CardOutside> outside;    // the largest first
    std::vector<CardReserved> reserved;  // for others, while it could run
    CardWait wait;                       // why not here; kNothing: it could be here
    bool operator==(const OnCard&) const = default;
  };
  std::vector<OnCard> cards;  // by index

  std::vector<Change> changes;  // each of them alone would do
};

// `sight` is of this state and moment: state.look(moment), or engine.sight().
Explanation explain(const State& state, const Moment& moment, Sight& sight, const Job& job);

// What would become of a job that somebody thinks of.
struct Trial {
  std::optional<std::vector<GrantedCard>> grant;  // it would start now, on these; nullopt: wait
  std::vector<JobId> parked;  // those that would be parked, or give back what they have grown by
  Explanation why;            // of one that would wait
};
// An error is what whoever submits it would be told. Of an array: what would become of its first
// job. The state is afterwards what it was; a Sight of it is of no use any more.
Result<Trial> try_out(State& state, const Moment& moment, const Submit& submit);

}  // namespace mete::core
