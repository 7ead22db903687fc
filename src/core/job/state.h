// SPDX-License-Identifier: Apache-2.0
// Everything the daemon has decided so far, and what it decides next: jobs, who holds what, whose
// turn it is. decide() and grants() are pure; apply() changes the state and is the same
// function for what was just decided and for the log of the time before.
//
// The machine (cards, what others hold there) is handed in: it is seen, not decided.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "core/job/event.h"
#include "core/job/input.h"
#include "core/job/job.h"
#include "core/place/place.h"

namespace mete::core {

inline constexpr std::size_t kMaxUnfinished = 10'000;  // jobs that wait or run
inline constexpr std::size_t kEndedKept = 1'000;       // of those that have ended

class State {
 public:
  // What follows from an input, to be applied in order. An error changes nothing: not_found (no
  // such job, or another user's), denied, infeasible (can never fit), exhausted (no room now and
  // it will not wait; or too many jobs), busy (not in a state for that).
  Result<std::vector<Happened>> decide(const Input& input, const Pool& machine,
                                       Policy policy) const;

  // Everybody in line who may start now, with their cards, in line order. Any number of them from
  // the front may be applied.
  std::vector<JobGranted> grants(const Pool& machine, Policy policy) const;

  // METE_ASSERTs what can never be: a gap in the numbers, a step that no state allows, a grant for
  // a job that has one.
  void apply(const Event& event);

  // Why each pending job waits, in line order.
  struct Waiting {
    JobId id;
    Wait why;
  };
  std::vector<Waiting> waiting(const Pool& machine, Policy policy) const;

  // The machine with our own grants on it.
  Pool with_grants(Pool machine) const;

  const std::map<JobId, Job>& jobs() const { return jobs_; }
  const Job* find(JobId id) const;
  // The unfinished job of a runner, which has one at most; nullptr: none.
  const Job* find_by_runner(const ProcessRef& runner) const;
  std::uint64_t last_seq() const { return last_seq_; }
  const std::set<std::string>& lost_cards() const { return lost_; }

  // For snapshots: the state is these values, and no others.
  struct Parts {
    std::uint64_t last_seq = 0;
    std::uint64_t last_job = 0;
    std::vector<Job> jobs;
    std::vector<std::string> lost;
  };
  Parts parts() const;
  static State from_parts(Parts parts);
  bool operator==(const State&) const = default;

 private:
  // The line, walked once: who may start, for whom cards are held, and what is left for those who
  // come after all of them.
  struct Line {
    std::vector<JobGranted> start;
    std::optional<JobId> held_for;
    Pool left;
  };
  Line walk(const Pool& machine, Policy policy) const;

  Result<std::vector<Happened>> decide_submit(const Submit& submit, const Pool& machine,
                                              Policy policy) const;
  Result<std::vector<Happened>> decide_started(const Started& started) const;
  Result<std::vector<Happened>> decide_ended(const Ended& ended) const;
  Result<std::vector<Happened>> decide_cancel(const Cancel& cancel) const;
  std::vector<Happened> decide_runner_gone(JobId id) const;
  std::vector<Happened> decide_look(const Pool& machine) const;
  Result<const Job*> of_user(JobId id, std::uint32_t uid) const;
  Job& step(JobId id, JobState to);
  void forget_old();

  std::map<JobId, Job> jobs_;
  std::set<JobId> pending_;   // in line order
  std::set<JobId> active_;    // hold a grant
  std::vector<JobId> ended_;  // oldest first
  std::set<std::string> lost_;
  std::uint64_t last_seq_ = 0;
  std::uint64_t last_job_ = 0;
};

// What somebody hears who would not wait.
Error no_room_now(const Wait& wait);

// How an end is called.
Outcome outcome_of(const Exit& exit);

}  // namespace mete::core
