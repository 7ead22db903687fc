// SPDX-License-Identifier: Apache-2.0
// Whom to park so that somebody who waits fits. Parked are jobs that allow it and have a lower
// priority, and growing ones of no higher priority that use more than their least (unless they
// would rather shed). Of all choices the one with the fewest jobs; of those the one whose highest
// priority is lowest; of those the one with the fewest bytes to move; then the oldest numbers.
//
// Not worth it, and so not done: for a job that could start as soon by itself; of one that has not
// run for as long as Rules::park_min_run_s, nor five times as long as its bytes take to go and come
// back; of one that refused lately, or always will. Whoever is on his way out already counts as
// gone, for as long as Rules::park_patience_s. Inside of core/order.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/order/pass.h"

namespace mete::core {

struct MadeRoom {
  std::vector<JobId> park;     // to be asked now
  std::vector<JobId> shrink;   // the same: to give back what they do not use
  std::vector<JobId> waiting;  // were asked before, and are on their way
  Placement placement;         // where it could go then
};

// `pool` is what is left for this kind at its place in line; `asked` are those who will be parked
// for somebody before it. nullopt: no parking helps.
std::optional<MadeRoom> make_room(const PassInput& input, const Pool& pool, const Kind& kind,
                                  std::int32_t priority, std::span<const PassResult::ToPark> asked);

// When a job may be parked for others, as far as time decides; nullopt: it may not be at all.
std::optional<WallTime> parkable_from(const Rules& rules, const Job& job);

// It is parked and may come back, unless it has tried in vain only just now.
bool may_try_to_return(const Rules& rules, const Job& job, WallTime now);
// When it may again, after it has tried in vain; nullopt: at once, or never.
std::optional<WallTime> tries_again(const Rules& rules, const Job& job);

// How long its bytes take to go away, or to come back.
std::uint64_t park_cost_ms(const Job& job);

}  // namespace mete::core
