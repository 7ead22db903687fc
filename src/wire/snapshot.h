// SPDX-License-Identifier: Apache-2.0
// All that one look at the machine shows to one reader: {"schema":"mete.snapshot/1",...}, see
// docs/formats/snapshot.schema.json. Cards, jobs, the line and what was before, of one moment:
// `mete top` is drawn from it and from nothing else. What is not known is absent, never zero, and
// readings say how old they are (CardView::reading_age_s).
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
#include "wire/cards.h"
#include "wire/job.h"

namespace mete::wire {

// A figure over time. The last value is of the step that ended at last_at, the one before it of
// the step before. nullopt: not known, or not there yet.
struct Series {
  std::uint32_t step_s = 0;
  WallTime last_at;
  std::vector<std::optional<std::uint32_t>> values;  // oldest first
  bool operator==(const Series&) const = default;
};

// The same figure in steps of several lengths, the shortest first: 120 steps of 5 s, 120 of 60 s.
// A step of utilisation is the mean of what was read in it, one of memory the most.
struct Past {
  std::vector<Series> utilisation_pct;
  std::vector<Series> used_mib;
  bool operator==(const Past&) const = default;
};
inline constexpr std::size_t kPastSteps = 120;
inline constexpr std::uint32_t kPastStepS[] = {5, 60};

struct History {
  std::map<std::string, Past> cards;  // by UUID
  std::map<core::JobId, Past> jobs;   // of those that have a grant
  bool operator==(const History&) const = default;
};

struct Snapshot {
  WallTime at;
  std::uint64_t seq = 0;  // of the last event that is on disk; the next is seq + 1
  std::string trouble;    // why readings are missing or old: "the driver does not answer"
  std::string driver;     // its version; "": not known
  DaemonView daemon;
  // All of the machine, also those on which the reader has nothing. `jobs` of a card are
  // everybody's (number, user, bytes), `foreign_list` is what runs there outside of mete.
  std::vector<CardView> cards;

  // One process of a job on one card. One that is on two cards is there twice. The daemon tells of
  // those on cards; whoever draws a tree adds the others, which are on none.
  struct Process {
    std::int32_t pid = 0;
    std::uint64_t start_ticks = 0;      // with the pid it is one process; 0: not known
    std::int32_t parent = 0;            // 0: not known
    std::optional<std::uint32_t> card;  // index; absent: on none
    std::string name;                   // "python"; "": not known
    std::optional<Bytes> used;
    std::optional<unsigned> utilisation_pct;
    bool operator==(const Process&) const = default;
  };
  struct Job {
    JobView view;  // idle_since, park, wait, forecast and what it uses of each card are in here
    std::vector<Process> processes;  // by pid, then card
    // For each granted card: the most that this attempt ever held, as its meter says, or, without
    // one, as this daemon has read.
    std::vector<std::optional<Bytes>> peaks;
    std::optional<unsigned> utilisation_pct;  // of all its processes, on the busiest of its cards
    std::optional<core::ProcessRef> runner = {};  // whose descendants its processes are
  };
  // That have not ended and that the reader may see, by number. Of those that wait in line only the
  // first kSnapshotPending are here.
  std::vector<Job> jobs;

  // Who waits. Why, for whom and until when is in the view of each job.
  struct Queue {
    // Pending jobs of `jobs`, as they stand in line; `place` counts everybody's, from 1, and is
    // absent for those that are not in line (held, or after another job).
    struct Entry {
      core::JobId id;
      std::optional<std::uint64_t> place;
      bool operator==(const Entry&) const = default;
    };
    std::vector<Entry> order;
    std::uint64_t left_off = 0;  // pending, may be seen, and not in `jobs`
    // Everybody's that are pending, by the name of the reason.
    std::map<std::string, std::uint64_t> depth;
    bool operator==(const Queue&) const = default;
  };
  Queue queue;

  // In a stream it comes with the first snapshot and then whenever a step has ended; absent: as it
  // was in the one before (see carry_history). A single GET has it unless it says ?history=0.
  std::optional<History> history;
};
inline constexpr std::size_t kSnapshotPending = 500;

std::string encode(const Snapshot& snapshot);
Result<Snapshot> decode_snapshot(std::string_view json);

// The history that `next` leaves out is that of the snapshot before it in the same stream.
void carry_history(Snapshot& next, Snapshot&& before);

}  // namespace mete::wire
