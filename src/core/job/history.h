// SPDX-License-Identifier: Apache-2.0
// Which jobs have ended, which of them are remembered, and the counts of arrays, some jobs of which
// may be forgotten.
//
// The latest ended jobs of each user are remembered, so that one user's jobs never push out another
// user's. An array keeps one failed job as long as any of its jobs is known, so that a job that
// waits for the array does not start as if all had succeeded. At most one failure is kept per
// array: a user's history has less than twice the configured jobs, plus one for each array that has
// not ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/job/job.h"

namespace mete::core {

// Counts for a job, or for all jobs of an array, including forgotten jobs.
struct Ends {
  std::uint64_t open = 0;  // have not ended
  std::uint64_t failed = 0;
  // For an array: its jobs that are not forgotten, and how many of them failed.
  std::uint64_t known = 0;
  std::uint64_t known_failed = 0;
  // One failed job is remembered as long as other jobs are.
  bool keeps_one() const { return known_failed > 0 && known > 1; }
};

inline bool has_failed(const Job& job) { return job.outcome != Outcome::kOk; }

class History {
 public:
  using Jobs = std::map<JobId, Job>;

  // The ended jobs that are remembered, in the order in which they ended.
  const std::vector<JobId>& ended() const { return ended_; }
  // enter(): a job has ended. leave(): an ended job runs again.
  void enter(const Job& job);
  void leave(const Job& job);

  // Arrays that are not forgotten, by number; nullptr: there is no such array.
  const std::map<std::uint64_t, Ends>& arrays() const { return arrays_; }
  const Ends* array(std::uint64_t number) const;
  // open(): a job of an array is submitted. Then: it has ended (after enter()), or runs again
  // (after leave()).
  void open(JobId id);
  const Ends& close(const Job& job);
  void reopen(const Job& job);
  // For an array from a snapshot, before its ended jobs enter.
  void restore_failed(std::uint64_t number, std::uint64_t failed);
  void restore_known(JobId id) { ++arrays_[id.number].known; }
  void restore_open(JobId id) { ++arrays_[id.number].open; }
  // Undoes the submission of the array.
  void take_back_array(std::uint64_t number) { arrays_.erase(number); }

  // How many ended jobs the user has above `kept`, not counting failures that are kept for their
  // arrays. 0 until there is a batch of them, since forgetting reads the list of all users.
  std::size_t too_many(const std::string& user, std::size_t kept) const;
  bool has_ended_jobs(const std::string& user) const;
  // The user's oldest ended jobs that may be forgotten leave the history, one by one, until
  // enough(). drop(job) is called for each.
  template <typename Enough, typename Drop>
  void forget_oldest(const std::string& user, const Jobs& jobs, Enough enough, Drop drop) {
    std::erase_if(ended_, [&](JobId id) {
      if (enough()) return false;
      const Job& job = jobs.at(id);
      if (job.spec->user != user || !may_forget(job)) return false;
      forget(job);
      drop(forgotten_.back());
      return true;
    });
  }
  // Jobs forgotten since the last call. They are not part of the state.
  std::vector<Job> take_forgotten() { return std::exchange(forgotten_, {}); }

  // During a replay: the job runs again later in the log, and must not be forgotten before that.
  void remember_until_requeued(JobId id) { ++requeued_later_[id]; }
  void requeued(JobId id);

 private:
  struct Tally {
    std::size_t ended = 0;
    std::size_t kept_failures = 0;  // kept for their arrays
  };

  void count_out(const Job& job);
  template <typename Change>
  void change_array(const Job& job, Change change);
  bool may_forget(const Job& job) const;
  void forget(const Job& job);  // everything but its place in ended_

  std::vector<JobId> ended_;
  std::map<std::string, Tally> users_;
  std::map<std::uint64_t, Ends> arrays_;
  std::vector<Job> forgotten_;
  std::map<JobId, std::uint32_t> requeued_later_;
};

}  // namespace mete::core
