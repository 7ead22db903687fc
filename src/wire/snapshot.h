// SPDX-License-Identifier: Apache-2.0
// Everything that one reader sees of the machine at one time: {"schema":"mete.snapshot/1",...}, see
// docs/formats/snapshot.schema.json. Cards, jobs, the queue and the history: `mete top` is drawn
// from it alone. Unknown values are absent, never zero, and readings have their age
// (CardView::reading_age_s).
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

// A figure over time. The last value is for the step that ended at last_at, the one before it for
// the step before. nullopt: unknown, or not there yet.
struct Series {
  std::uint32_t step_s = 0;
  WallTime last_at;
  std::vector<std::optional<std::uint32_t>> values;  // oldest first
  bool operator==(const Series&) const = default;
};

// A figure in steps of several lengths, the shortest first: 120 steps of 5 s, 120 of 60 s. A step
// of utilisation is the mean of its readings, a step of memory the maximum.
struct Past {
  std::vector<Series> utilisation_pct;
  std::vector<Series> used_mib;
  bool operator==(const Past&) const = default;
};
inline constexpr std::size_t kPastSteps = 120;
inline constexpr std::uint32_t kPastStepS[] = {5, 60};

struct History {
  std::map<std::string, Past> cards;  // by UUID
  std::map<core::JobId, Past> jobs;   // with a grant
  bool operator==(const History&) const = default;
};

struct Snapshot {
  WallTime at;
  std::uint64_t seq = 0;  // of the last event on disk; the next is seq + 1
  std::string trouble;    // why readings are missing or old: "the driver does not answer"
  std::string driver;     // version; "": unknown
  DaemonView daemon;
  // All cards of the machine. `jobs` of a card are of all users (number, user, bytes),
  // `foreign_list` is what runs there outside mete.
  std::vector<CardView> cards;

  // A process of a job on one card; a process on two cards is listed twice. The daemon lists
  // processes on cards; `mete top` adds the others to draw a tree.
  struct Process {
    std::int32_t pid = 0;
    std::uint64_t start_ticks = 0;      // identifies the process with the pid; 0: unknown
    std::int32_t parent = 0;            // 0: unknown
    std::optional<std::uint32_t> card;  // index; absent: none
    std::string name;                   // "python"; "": unknown
    std::optional<Bytes> used;
    std::optional<unsigned> utilisation_pct;
    bool operator==(const Process&) const = default;
  };
  struct Job {
    JobView view;  // with idle_since, park, wait, forecast and what it uses of each card
    std::vector<Process> processes;  // by pid, then card
    // For each granted card: the most that this attempt held, by its meter, or, without one, by the
    // daemon's readings.
    std::vector<std::optional<Bytes>> peaks;
    std::optional<unsigned> utilisation_pct;  // of all its processes, on the busiest of its cards
    std::optional<core::ProcessRef> runner = {};  // ancestor of its processes
  };
  // Unfinished jobs that the reader may see, by number; other users' jobs are rows, without
  // processes and peaks. Of the queue only kSnapshotPending jobs are included, the reader's own
  // first.
  std::vector<Job> jobs;

  // The queue. The view of each job says why and until when it waits.
  struct Queue {
    // Pending jobs of `jobs`, in queue order; `place` counts jobs of all users, from 1, and is
    // absent for jobs that are not in the queue (held, or after another job).
    struct Entry {
      core::JobId id;
      std::optional<std::uint64_t> place;
      bool operator==(const Entry&) const = default;
    };
    std::vector<Entry> order;
    std::uint64_t left_off = 0;  // pending jobs that the reader may see and that are not in `jobs`
    // Pending jobs of all users, by the name of the reason.
    std::map<std::string, std::uint64_t> depth;
    bool operator==(const Queue&) const = default;
  };
  Queue queue;

  // In a stream it comes with the first snapshot and then whenever a step has ended; absent:
  // unchanged (see carry_history). A single GET has it unless it says ?history=0.
  std::optional<History> history;
};
inline constexpr std::size_t kSnapshotPending = 500;

std::string encode(const Snapshot& snapshot);
Result<Snapshot> decode_snapshot(std::string_view json);

// Takes the history that `next` leaves out from the snapshot before it in the stream.
void carry_history(Snapshot& next, Snapshot&& before);

}  // namespace mete::wire
