// SPDX-License-Identifier: Apache-2.0
// Which replicas are awake when more of them exist than fit on the cards: those that have requests,
// each for a while. Decided for all replicas of all services together; pure. The caller tells what
// each replica does, carries out what is decided (a swap: some go to sleep, one wakes), and asks
// again when something has changed or at Decision::again_ms.
//
// The rules:
//  - A replica that is awake answers its requests before it makes room for another.
//  - Of the sleeping ones that have requests, the one of the highest priority is next; then one
//    whose request has waited for max_wait; then the one whose request came first.
//  - Room is made by replicas without requests, at once: first by those that are the cheapest to be
//    without (their requests in a minute, times how long they take to wake, for each byte). If that
//    is not enough, by those with requests that have a lower priority, or an equal one and whose
//    slice is over.
//  - A replica that does not fit yet does not keep smaller ones from waking, until its request has
//    waited for max_wait.
//  - On a card one swap goes on at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace mete::core::service {

// Milliseconds of any clock that only goes forward.
using Moment = std::int64_t;

enum class Rest { kAsleep, kWaking, kAwake, kLeaving };

// A replica, or its place on one card or several.
struct Sleeper {
  struct On {
    std::uint32_t card = 0;
    Bytes bytes;  // that it needs there to be awake, beyond what stays there while it sleeps
  };
  std::vector<On> needs;
  Rest rest = Rest::kAsleep;
  bool always = false;  // `resident: always`: is never put to sleep for another
  std::int32_t priority = 0;
  std::uint32_t waiting = 0;    // requests that no replica has begun
  std::uint32_t in_flight = 0;  // begun; paused while it sleeps
  Moment waits_since = 0;       // of its oldest request that waits or is paused
  Moment max_wait_ms = 30'000;
  Moment awake_since = 0;
  Moment used_at = 0;     // when its last request ended or began
  double per_minute = 0;  // requests, lately: Demand below
  Moment wake_ms = 500;   // how long it takes
  bool wanted() const { return waiting + in_flight > 0; }
};

// A busy replica is not put to sleep for an equal one before it was awake this long.
Moment slice_ms(const Sleeper& sleeper);

struct Decision {
  std::vector<std::size_t> sleep;   // indexes; these make room for `wake`
  std::optional<std::size_t> wake;  // once the others are asleep
  // If nothing is decided: when time alone changes that.
  std::optional<Moment> again_ms;
};

// One swap. Apply it (rest becomes kLeaving and kWaking) and ask again: other cards may have one
// too. `free`: by card, what is free there now; what waking replicas need is taken, what leaving
// ones have is not free yet.
Decision next_swap(std::span<const Sleeper> sleepers, std::span<const Bytes> free, Moment now);

// Requests in a minute, lately: each counts half after a minute.
class Demand {
 public:
  void add(Moment now, double requests = 1);
  double per_minute(Moment now) const;

 private:
  double count_ = 0;
  Moment at_ = 0;
};

}  // namespace mete::core::service
