// SPDX-License-Identifier: Apache-2.0
// The order of grants: what must hold between the jobs that were given cards in a turn and the jobs
// that still wait after it. Judged only where it is certain which job was ahead and whether a job
// could have started; the rest is left to the golden tests of core/order. Ahead is a job that has
// waited too long, then the higher priority, then the user with less recent usage (certain as long
// as that user was given nothing in the turn), then the lower number.
//
//  - No job starts on room that a job ahead of it, with an equal request and no longer a time
//    limit, could have had.
//  - A later job never delays the first job in the queue: judged by the limits of running jobs and
//    what was learned of them, and where their ends are unknown, by the memory that must be given
//    up first.
//  - The first job in the queue does not wait while there is room for it.
//  - A parked job that may return is ahead of jobs of its priority, unless the job for which it
//    made room still waits: then these rules hold for that job.
// While room is being made by parking other jobs, it is not certain where it will be: then only the
// first of these rules is checked.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/job/state.h"
#include "tests/sim/books.h"
#include "tests/sim/cards.h"

namespace mete::sim {

// A turn that has been committed, and what the daemon saw in it.
struct Turn {
  const core::Pool& machine;
  WallTime now;
  const core::State& state;
  std::vector<core::JobId> fresh;     // granted in it
  std::vector<core::JobId> returned;  // parked before, and ordered to return
  bool all_were_asked = true;  // no other daemon was first, and no old attempt prevented a grant
};

class Line {
 public:
  Line(Judge& judge, const Books& books) : judge_(judge), books_(books) {}
  void check(const Turn& turn);

 private:
  struct Share {
    core::JobId job;
    std::int64_t bytes = 0;
    std::optional<WallTime> ends;
    bool parked = false;
  };
  struct Loaded {
    const core::PoolCard* card = nullptr;
    std::int64_t capacity = 0;
    std::int64_t others = 0;  // claimed or held outside
    std::vector<Share> shares;
  };

  void look(const Turn& turn);
  void find_starving();
  void add_up_usage(const Turn& turn);
  // nullptr: not certain.
  const Entry* first() const;
  bool is_behind(const Entry& later, const Entry& earlier) const;
  void same_ask(const Turn& turn) const;
  bool could_have_had(const Entry& entry, const Entry& got, const Turn& turn) const;
  void first_is_not_delayed(const Turn& turn, const Entry& first);
  bool is_clear(const Entry& entry) const;
  bool fits_beside_parked(std::int64_t share, const Turn& turn) const;
  // Parked jobs that may return, and the first of them, if no job in the queue is ahead of it.
  bool stands_in_line(const Entry& parked) const;
  bool has_waited_too_long(const Entry& parked) const;
  bool is_behind_parked(const Entry& later, const Entry& parked) const;
  const Entry* first_back() const;
  void first_back_is_not_delayed(const Turn& turn, const Entry& parked);
  std::optional<WallTime> fits_on(const Loaded& on, std::int64_t share,
                                  const std::set<core::JobId>& without, WallTime now) const;
  std::optional<WallTime> returns_at(const Entry& parked, std::set<core::JobId> without) const;
  std::int64_t lacks(const Entry& parked, std::set<core::JobId> without) const;
  // When the share fits on some card without these jobs; nullopt: unknown.
  std::optional<WallTime> fits_at(std::int64_t share, const std::set<core::JobId>& without,
                                  WallTime now) const;
  std::optional<std::int64_t> missing(std::int64_t share,
                                      const std::set<core::JobId>& without) const;

  Judge& judge_;
  const Books& books_;
  std::vector<const Entry*> waiting_;  // in the queue, by number
  std::set<core::JobId> fresh_;
  std::map<std::string, std::uint64_t> usage_;  // by user, as the pass found it
  std::set<std::string> served_;                // users of the freshly granted jobs
  std::set<core::JobId> starving_;              // one of each user, also with fresh grants
  std::vector<const Entry*> back_;              // may return
  bool room_is_made_ = false;  // a job is being parked, or asked to give back memory
  std::vector<Loaded> cards_;
  WallTime now_;
};

}  // namespace mete::sim
