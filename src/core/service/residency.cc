// SPDX-License-Identifier: Apache-2.0
// See residency.h. order_of() lists the replicas that want to wake, Swap finds the room for one of
// them: what is free, then idle replicas, then those whose turn is over, and at last it lets those
// stay that turned out not to be needed. Replicas on cards with a swap in progress wait for its
// end.
#include "core/service/residency.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace mete::core::service {

namespace {

constexpr Moment kLeastSlice = 2'000;
constexpr Moment kSliceOfWakes = 10;
constexpr double kHalfLifeMs = 60'000;

bool is_overdue(const Sleeper& sleeper, Moment now) {
  return sleeper.wanted() && now - sleeper.waits_since >= sleeper.max_wait_ms;
}

std::vector<std::size_t> order_of(std::span<const Sleeper> sleepers, Moment now) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < sleepers.size(); ++i)
    if (sleepers[i].rest == Rest::kAsleep && sleepers[i].wanted()) order.push_back(i);
  const auto key = [&](std::size_t i) {
    const Sleeper& one = sleepers[i];
    return std::tuple(-static_cast<std::int64_t>(one.priority), !is_overdue(one, now),
                      one.waits_since, i);
  };
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return order;
}

Bytes bytes_on(const Sleeper& sleeper, std::uint32_t card) {
  Bytes bytes;
  for (const Sleeper::On& on : sleeper.needs)
    if (on.card == card) bytes = bytes + on.bytes;
  return bytes;
}

// How much is lost by not having it awake, for each byte that it takes.
double worth(const Sleeper& sleeper) {
  double bytes = 1;
  for (const Sleeper::On& on : sleeper.needs) bytes += static_cast<double>(on.bytes.count());
  return sleeper.per_minute * static_cast<double>(sleeper.wake_ms) / bytes;
}

// The search for the room of one replica.
class Swap {
 public:
  Swap(std::span<const Sleeper> sleepers, std::span<const Bytes> free, std::size_t wake, Moment now)
      : sleepers_(sleepers), wake_(sleepers[wake]), now_(now) {
    for (const Sleeper::On& on : wake_.needs) {
      const Bytes there = on.card < free.size() ? free[on.card] : Bytes();
      lacks_.push_back({on.card, on.bytes > there ? on.bytes - there : Bytes()});
      known_ = known_ && on.card < free.size();
    }
  }

  // Replicas that make the room, perhaps none; nullopt: there is none to be had now.
  std::optional<std::vector<std::size_t>> find() {
    if (!known_) return std::nullopt;
    std::vector<std::size_t> idle;
    std::vector<std::size_t> busy;
    for (std::size_t i = 0; i < sleepers_.size(); ++i) {
      if (!may_leave(sleepers_[i])) continue;
      (sleepers_[i].wanted() ? busy : idle).push_back(i);
    }
    std::sort(idle.begin(), idle.end(), [&](std::size_t a, std::size_t b) {
      const Sleeper& one = sleepers_[a];
      const Sleeper& other = sleepers_[b];
      return std::tuple(one.priority, worth(one), one.used_at, a) <
             std::tuple(other.priority, worth(other), other.used_at, b);
    });
    std::sort(busy.begin(), busy.end(), [&](std::size_t a, std::size_t b) {
      const Sleeper& one = sleepers_[a];
      const Sleeper& other = sleepers_[b];
      return std::tuple(one.priority, one.awake_since, a) <
             std::tuple(other.priority, other.awake_since, b);
    });
    take(idle);
    take(busy);
    if (!is_enough()) return std::nullopt;
    let_stay();
    return taken_;
  }

  // When a busy replica's slice is over that now keeps this one asleep.
  std::optional<Moment> next_change() const {
    std::optional<Moment> next;
    for (const Sleeper& one : sleepers_) {
      if (one.rest != Rest::kAwake || one.always || !one.wanted() || !helps(one)) continue;
      if (one.priority != wake_.priority) continue;
      const Moment over = one.awake_since + slice_ms(one);
      if (over > now_ && (!next || over < *next)) next = over;
    }
    return next;
  }

 private:
  struct Lack {
    std::uint32_t card;
    Bytes bytes;
  };

  bool helps(const Sleeper& one) const {
    return std::any_of(lacks_.begin(), lacks_.end(), [&](const Lack& lack) {
      return !lack.bytes.is_zero() && !bytes_on(one, lack.card).is_zero();
    });
  }
  bool may_leave(const Sleeper& one) const {
    if (one.rest != Rest::kAwake || one.always) return false;
    if (!one.wanted() || one.priority < wake_.priority) return true;
    return one.priority == wake_.priority && now_ >= one.awake_since + slice_ms(one);
  }
  bool is_enough() const {
    return std::all_of(lacks_.begin(), lacks_.end(),
                       [](const Lack& lack) { return lack.bytes.is_zero(); });
  }
  void take(const std::vector<std::size_t>& candidates) {
    for (const std::size_t i : candidates) {
      if (is_enough()) return;
      if (!helps(sleepers_[i])) continue;
      taken_.push_back(i);
      for (Lack& lack : lacks_) {
        const Bytes given = bytes_on(sleepers_[i], lack.card);
        spare_.push_back({lack.card, given > lack.bytes ? given - lack.bytes : Bytes()});
        lack.bytes = lack.bytes > given ? lack.bytes - given : Bytes();
      }
    }
  }
  // The last taken are worth most: those without which the rest is enough stay awake.
  void let_stay() {
    std::vector<Lack> spare;
    for (const Lack& lack : lacks_) {
      Bytes most;
      for (const Lack& one : spare_)
        if (one.card == lack.card) most = most + one.bytes;
      spare.push_back({lack.card, most});
    }
    for (std::size_t i = taken_.size(); i-- > 0;) {
      const Sleeper& one = sleepers_[taken_[i]];
      const bool needed = std::any_of(spare.begin(), spare.end(), [&](const Lack& more) {
        return bytes_on(one, more.card) > more.bytes;
      });
      if (needed) continue;
      for (Lack& more : spare) more.bytes = more.bytes - bytes_on(one, more.card);
      taken_.erase(taken_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  std::span<const Sleeper> sleepers_;
  const Sleeper& wake_;
  Moment now_;
  bool known_ = true;  // its cards are there
  std::vector<Lack> lacks_;
  std::vector<Lack> spare_;  // what the taken ones gave beyond what was lacking
  std::vector<std::size_t> taken_;
};

void consider(std::optional<Moment>& next, std::optional<Moment> other) {
  if (other && (!next || *other < *next)) next = other;
}

}  // namespace

Moment slice_ms(const Sleeper& sleeper) {
  return std::max(kLeastSlice, kSliceOfWakes * sleeper.wake_ms);
}

Decision next_swap(std::span<const Sleeper> sleepers, std::span<const Bytes> free, Moment now) {
  Decision decision;
  std::vector<bool> taken(free.size());  // a swap goes on there, or room is kept for one
  const auto take_cards = [&](const Sleeper& one) {
    for (const Sleeper::On& on : one.needs)
      if (on.card < taken.size()) taken[on.card] = true;
  };
  for (const Sleeper& one : sleepers)
    if (one.rest == Rest::kWaking || one.rest == Rest::kLeaving) take_cards(one);
  for (const std::size_t i : order_of(sleepers, now)) {
    const Sleeper& one = sleepers[i];
    const bool must_wait = std::any_of(one.needs.begin(), one.needs.end(), [&](const auto& on) {
      return on.card < taken.size() && taken[on.card];
    });
    if (!must_wait) {
      Swap swap(sleepers, free, i, now);
      if (std::optional<std::vector<std::size_t>> sleep = swap.find())
        return {*std::move(sleep), i, std::nullopt};
      consider(decision.again_ms, swap.next_change());
    }
    if (is_overdue(one, now))
      take_cards(one);
    else
      consider(decision.again_ms, one.waits_since + one.max_wait_ms);
  }
  return decision;
}

void Demand::add(Moment now, double requests) {
  count_ = per_minute(now) + requests;
  at_ = now;
}

double Demand::per_minute(Moment now) const {
  return now <= at_ ? count_ : count_ * std::exp2(-static_cast<double>(now - at_) / kHalfLifeMs);
}

}  // namespace mete::core::service
