// SPDX-License-Identifier: Apache-2.0
// Which jobs to park so that a waiting job fits. Candidates are jobs that allow it and have a lower
// priority, and growing jobs of no higher priority that use more than their minimum (unless
// --shed). The best choice parks the fewest jobs; then has the lowest highest priority; then moves
// the fewest bytes; then has the lowest numbers.
//
// No job is parked if the waiting job could start as soon without it. A job is not parked before it
// has run for Rules::park_min_run_s and for five times as long as moving its bytes out and back
// takes, nor if it refused lately or cannot be parked at all. A job that is being parked already
// counts as gone, for Rules::park_patience_s. Internal to core/order.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/order/pass.h"

namespace mete::core {

struct MadeRoom {
  std::vector<JobId> park;     // to be told now
  std::vector<JobId> shrink;   // to be asked now to give back what they do not use
  std::vector<JobId> waiting;  // told before, not done yet
  Placement placement;         // where the waiting job could go then
};

// `pool` is what is left for this kind at its place in the queue; `asked` are jobs that are parked
// for jobs before it. nullopt: parking does not help.
std::optional<MadeRoom> make_room(const PassInput& input, const Pool& pool, const Kind& kind,
                                  std::int32_t priority, std::span<const PassResult::ToPark> asked);

// From when a job may be parked for others; nullopt: never.
std::optional<WallTime> parkable_from(const Rules& rules, const Job& job);

// The job is parked and may come back, unless an attempt has just failed.
bool may_try_to_return(const Rules& rules, const Job& job, WallTime now);
// When a job whose attempt to come back failed may retry; nullopt: at once, or never.
std::optional<WallTime> tries_again(const Rules& rules, const Job& job);

std::uint64_t park_cost_ms(const Job& job);

}  // namespace mete::core
