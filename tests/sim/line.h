// SPDX-License-Identifier: Apache-2.0
// Whose turn it was: what must hold between those who were given cards in a turn and those who
// still wait after it. Judged only where it is certain who was ahead of whom and whether a job
// could have started; the rest is left to the golden tests of core/order. Ahead is who has waited
// too long, then the higher priority, then the user who had less of the cards lately (certain as
// long as that user was given nothing in the same turn), then the lower number.
//
//  - Nobody starts on room that somebody ahead of him, who asks for the same and for no longer,
//    could have had.
//  - Whoever comes later never makes the first in line start later than it could have: by the
//    limits of those who run and what was learned of them, and where nobody knows when they end,
//    by the memory that others must give up first.
//  - The first in line does not wait while there is room for it.
//  - Whoever was parked and may come back stands before those of his priority, unless the one for
//    whom he gave way still waits: the same holds for him.
// While room is being made for somebody by parking others it is not certain where it will be: then
// only the first of these rules is looked at.
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
  std::vector<core::JobId> returned;  // parked before, and told to come back
  bool all_were_asked = true;         // no other daemon was first, and no old attempt in the way
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
  // Nullptr: not certain.
  const Entry* first() const;
  bool is_behind(const Entry& later, const Entry& earlier) const;
  void same_ask(const Turn& turn) const;
  bool could_have_had(const Entry& entry, const Entry& got, const Turn& turn) const;
  void first_is_not_delayed(const Turn& turn, const Entry& first);
  bool is_clear(const Entry& entry) const;
  bool fits_beside_parked(std::int64_t share, const Turn& turn) const;
  // Those who may come back, and the first of them, if nobody in line is before him.
  bool stands_in_line(const Entry& parked) const;
  bool has_waited_too_long(const Entry& parked) const;
  bool is_behind_parked(const Entry& later, const Entry& parked) const;
  const Entry* first_back() const;
  void first_back_is_not_delayed(const Turn& turn, const Entry& parked);
  std::optional<WallTime> fits_on(const Loaded& on, std::int64_t share,
                                  const std::set<core::JobId>& without, WallTime now) const;
  std::optional<WallTime> returns_at(const Entry& parked, std::set<core::JobId> without) const;
  std::int64_t lacks(const Entry& parked, std::set<core::JobId> without) const;
  // When the share fits on some card without these jobs; nullopt: nobody knows.
  std::optional<WallTime> fits_at(std::int64_t share, const std::set<core::JobId>& without,
                                  WallTime now) const;
  std::optional<std::int64_t> missing(std::int64_t share,
                                      const std::set<core::JobId>& without) const;

  Judge& judge_;
  const Books& books_;
  std::vector<const Entry*> waiting_;  // in line, by number
  std::set<core::JobId> fresh_;
  std::map<std::string, std::uint64_t> usage_;  // by user, as the walk found it
  std::set<std::string> served_;                // users of the fresh ones
  std::set<core::JobId> starving_;  // of each user one, also of those who were just given cards
  std::vector<const Entry*> back_;  // may come back
  bool room_is_made_ = false;       // somebody is being parked, or asked to give back
  std::vector<Loaded> cards_;
  WallTime now_;
};

}  // namespace mete::sim
