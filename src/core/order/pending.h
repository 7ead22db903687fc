// SPDX-License-Identifier: Apache-2.0
// The jobs that are ready to start, arranged for a pass: by priority and user, then by number. Jobs
// that placement cannot tell apart share a kind, so that one answer serves thousands of them. A
// hundred thousand jobs take about 10 MB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/job/job.h"
#include "core/order/job_list.h"
#include "core/place/spare.h"

namespace mete::core {

using KindId = std::uint32_t;

// All that decides whether a job can start, apart from its place in the queue.
struct Kind {
  Request request;
  std::string user;
  std::optional<std::uint64_t> time_s;
  std::string name;         // without --time: durations are learned by name; otherwise ""
  std::uint64_t array = 0;  // an array with a limit; otherwise 0
  std::uint32_t at_once = 0;
  bool detached = false;
  bool no_preempt = false;
  auto operator<=>(const Kind&) const = default;
};
Kind kind_of(const Job& job);

// The CPUs that are counted for a job: a detached job without a card has one unless it asks for
// more; a `mete run` is not counted.
std::uint32_t cpus_of(const Request& request, bool detached);

class Pending {
 public:
  struct Queue {
    std::int32_t priority = 0;
    std::string user;
    // Highest priority first.
    bool operator<(const Queue& other) const {
      return priority != other.priority ? priority > other.priority : user < other.user;
    }
  };
  struct Entry {
    KindId kind = 0;
    std::int64_t not_before_ms = 0;  // --begin, or a retry; 0: now
    std::int64_t submitted_ms = 0;
  };
  using Jobs = JobList<Entry>;

  void insert(const Job& job);
  // The job must have the priority with which it was inserted.
  void erase(const Job& job);

  const std::map<Queue, Jobs>& queues() const { return queues_; }
  // The kinds of the jobs in a queue, and the number of jobs of each.
  const std::map<KindId, std::size_t>& kinds_in(const Queue& queue) const {
    return kinds_in_.at(queue);
  }
  const Kind& kind(KindId id) const { return kinds_[id].kind; }
  const Least& least(KindId id) const { return least_[id]; }
  std::optional<KindId> find(const Kind& kind) const;     // nullopt: no job has it
  std::size_t kind_ids() const { return kinds_.size(); }  // all ids are smaller
  std::size_t kinds() const { return by_value_.size(); }  // kinds that some job has
  std::size_t size() const { return size_; }
  // The next time after `now` at which a job that waits for a time may start.
  std::optional<WallTime> next_begin(WallTime now) const;

 private:
  struct Counted {
    Kind kind;
    std::size_t jobs = 0;
  };
  std::map<Queue, Jobs> queues_;
  std::map<Queue, std::map<KindId, std::size_t>> kinds_in_;
  std::vector<Counted> kinds_;
  std::vector<Least> least_;  // by kind, close together
  std::vector<KindId> unused_;
  std::map<Kind, KindId> by_value_;
  std::map<std::int64_t, std::size_t> begins_;  // times, and the number of jobs that wait for each
  std::size_t size_ = 0;
};

}  // namespace mete::core
