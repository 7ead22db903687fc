// SPDX-License-Identifier: Apache-2.0
#include "proxy/balance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace mete::proxy {
namespace {

TEST(Balancer, ARequestGoesToTheProcessWithTheFewest) {
  Balancer balancer(10);
  balancer.set_replica(1, 1, 4);
  balancer.set_replica(2, 1, 4);
  EXPECT_EQ(balancer.ask().seat, (Seat{1, 0}));
  EXPECT_EQ(balancer.ask().seat, (Seat{2, 0}));
  EXPECT_EQ(balancer.ask().seat, (Seat{1, 0})) << "it was given a request before the other";
  balancer.finish({1, 0});
  balancer.finish({1, 0});
  EXPECT_EQ(balancer.ask().seat, (Seat{1, 0}));
  EXPECT_EQ(balancer.in_flight(), 2u);
}

TEST(Balancer, ConcurrencyIsExactAndTheRestWaitsInOrder) {
  Balancer balancer(2);
  balancer.set_replica(1, 1, 2);
  EXPECT_TRUE(balancer.ask().seat);
  EXPECT_TRUE(balancer.ask().seat);
  const Balancer::Answer third = balancer.ask();
  const Balancer::Answer fourth = balancer.ask();
  EXPECT_TRUE(third.ticket && fourth.ticket);
  const Balancer::Answer fifth = balancer.ask();
  EXPECT_FALSE(fifth.seat || fifth.ticket) << "the queue is full";
  EXPECT_FALSE(balancer.give());
  balancer.finish({1, 0});
  EXPECT_TRUE(balancer.ask().ticket == std::nullopt) << "no one overtakes those that wait";
  EXPECT_EQ(balancer.give(), (Balancer::Given{third.ticket, {1, 0}}));
  EXPECT_FALSE(balancer.give());
  EXPECT_TRUE(balancer.leave(*fourth.ticket));
  EXPECT_FALSE(balancer.leave(*fourth.ticket));
  EXPECT_FALSE(balancer.leave(*third.ticket)) << "it has a seat";
  EXPECT_EQ(balancer.waiting(), 0u);
}

TEST(Balancer, ProcessesOfAReplicaHaveTheirPart) {
  Balancer balancer(0);
  balancer.set_replica(1, 4, 6);  // two in a process at most, six in all
  std::vector<std::uint32_t> in(4);
  for (int i = 0; i < 6; ++i) {
    const Balancer::Answer answer = balancer.ask();
    ASSERT_TRUE(answer.seat);
    ++in[answer.seat->process];
  }
  std::sort(in.begin(), in.end());
  EXPECT_EQ(in, (std::vector<std::uint32_t>{1, 1, 2, 2}));
  EXPECT_FALSE(balancer.ask().seat);
}

TEST(Balancer, AReplicaThatIsDrainedGetsNoMoreAndKeepsWhatItHas) {
  Balancer balancer(5);
  balancer.set_replica(1, 1, 2);
  EXPECT_TRUE(balancer.ask().seat);
  balancer.set_replica(1, 1, 0);
  const Balancer::Answer waits = balancer.ask();
  EXPECT_TRUE(waits.ticket);
  balancer.finish({1, 0});
  EXPECT_FALSE(balancer.give());
  balancer.set_replica(1, 1, 2);
  EXPECT_EQ(balancer.give(), (Balancer::Given{waits.ticket, {1, 0}}));
  // Fewer than it has: none until enough have ended.
  EXPECT_TRUE(balancer.ask().seat);
  balancer.set_replica(1, 1, 1);
  EXPECT_TRUE(balancer.ask().ticket);
  balancer.finish({1, 0});
  EXPECT_FALSE(balancer.give());
  balancer.finish({1, 0});
  EXPECT_TRUE(balancer.give());
}

TEST(Balancer, AReplicaThatIsGoneTakesItsRequestsAlong) {
  Balancer balancer(5);
  balancer.set_replica(1, 2, 4);
  EXPECT_TRUE(balancer.ask().seat);
  EXPECT_TRUE(balancer.ask().seat);
  EXPECT_EQ(balancer.in_replica(1), 2u);
  balancer.remove_replica(1);
  balancer.remove_replica(1);
  EXPECT_EQ(balancer.in_flight(), 0u);
  EXPECT_EQ(balancer.in_replica(1), 0u);
  EXPECT_TRUE(balancer.ask().ticket);
}

// Whatever happens in whatever order: no seat beyond its bounds, none idle while a request waits,
// requests leave the queue in their order, and each request has one end.
TEST(Balancer, HoldsItsRulesInAnyOrder) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::uint64_t state = seed;
    const auto below = [&](std::uint64_t n) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return (state >> 33) % n;
    };
    struct Truth {
      std::uint32_t processes = 0, concurrency = 0;
      std::map<std::uint32_t, std::uint32_t> in;
      std::uint32_t all = 0;
    };
    std::map<ReplicaId, Truth> replicas;
    std::deque<Ticket> waiting;
    std::vector<Seat> seats;
    Balancer balancer(8);
    const auto sit = [&](Seat seat) {
      Truth& truth = replicas.at(seat.replica);
      const std::uint32_t part = (truth.concurrency + truth.processes - 1) / truth.processes;
      EXPECT_LE(++truth.in[seat.process], part);
      EXPECT_LE(++truth.all, truth.concurrency);
      seats.push_back(seat);
    };
    for (int step = 0; step < 5'000; ++step) {
      const std::uint64_t deed = below(10);
      if (deed < 4) {
        const Balancer::Answer answer = balancer.ask();
        if (answer.seat)
          sit(*answer.seat);
        else if (answer.ticket)
          waiting.push_back(*answer.ticket);
        else
          EXPECT_EQ(waiting.size(), 8u);
      } else if (deed < 7 && !seats.empty()) {
        const std::size_t at = below(seats.size());
        const Seat seat = seats[at];
        seats.erase(seats.begin() + static_cast<std::ptrdiff_t>(at));
        --replicas.at(seat.replica).in[seat.process];
        --replicas.at(seat.replica).all;
        balancer.finish(seat);
      } else if (deed == 7 && !waiting.empty()) {
        const std::size_t at = below(waiting.size());
        EXPECT_TRUE(balancer.leave(waiting[at]));
        waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(at));
      } else if (deed == 8) {
        const ReplicaId id = below(4);
        Truth& truth = replicas[id];
        if (truth.processes == 0) truth.processes = static_cast<std::uint32_t>(1 + below(3));
        truth.concurrency = static_cast<std::uint32_t>(below(5));
        balancer.set_replica(id, truth.processes, truth.concurrency);
      } else if (deed == 9 && below(5) == 0) {
        const ReplicaId id = below(4);
        balancer.remove_replica(id);
        replicas.erase(id);
        std::erase_if(seats, [&](const Seat& seat) { return seat.replica == id; });
      }
      while (const auto given = balancer.give()) {
        ASSERT_EQ(given->ticket, waiting.front());
        waiting.pop_front();
        sit(given->seat);
      }
      ASSERT_EQ(balancer.waiting(), waiting.size());
      ASSERT_EQ(balancer.in_flight(), seats.size());
      bool room = false;
      for (const auto& [id, truth] : replicas) room = room || truth.all < truth.concurrency;
      // A replica with room has a process with room: the parts add up to its concurrency or more.
      if (!waiting.empty()) {
        ASSERT_FALSE(room);
      }
    }
  }
}

}  // namespace
}  // namespace mete::proxy
