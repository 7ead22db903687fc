// SPDX-License-Identifier: Apache-2.0
// Which replica of a service gets a request, and which requests wait. Pure: no sockets, no clock.
// A request goes to the process with the fewest requests in it that may take one more;
// among equals to the one that was given a request before the others. What no process may take
// waits in the order of arrival, up to the bound of the queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace mete::proxy {

using ReplicaId = std::uint64_t;
using Ticket = std::uint64_t;  // a request that waits; later ones are larger

// One process of a replica: what listens on one port.
struct Seat {
  ReplicaId replica = 0;
  std::uint32_t process = 0;
  auto operator<=>(const Seat&) const = default;
};

class Balancer {
 public:
  // `queue`: how many may wait.
  explicit Balancer(std::size_t queue) : most_waiting_(queue) {}

  struct Given {
    std::optional<Ticket> ticket;  // of the request that waited; absent: the one that was asked for
    Seat seat;
    bool operator==(const Given&) const = default;
  };

  // A replica takes `concurrency` requests at a time in all, each of its processes at most its part
  // of them, rounded up. Of a known replica only the concurrency changes: requests in it stay.
  // Zero: it gets no more requests (it is drained, or asleep). Then call give().
  void set_replica(ReplicaId replica, std::uint32_t processes, std::uint32_t concurrency);
  // It gets no more requests until it has rested: it does not take connections. Then call give().
  void set_resting(ReplicaId replica, bool resting);
  // It is gone, and with it the requests in it: finish() is not called for them.
  void remove_replica(ReplicaId replica);
  void set_queue(std::size_t queue) { most_waiting_ = queue; }

  // A request arrives.
  struct Answer {
    std::optional<Seat> seat = {};      // it goes there now
    std::optional<Ticket> ticket = {};  // it waits
    // Neither: the queue is full.
  };
  Answer ask();
  // The request in this seat has ended. Then call give().
  void finish(Seat seat);
  // A request that waits is gone, or has waited for too long. False: it does not wait.
  bool leave(Ticket ticket) { return waiting_.erase(ticket) != 0; }
  // The next waiting request that has a seat now; to be called until it returns nothing.
  std::optional<Given> give();

  std::size_t waiting() const { return waiting_.size(); }
  std::size_t in_flight() const { return in_flight_; }  // in replicas, without those that wait
  std::size_t in_replica(ReplicaId replica) const;
  bool has_replica(ReplicaId replica) const { return replicas_.contains(replica); }

 private:
  struct Process {
    std::uint32_t in_flight = 0;
    std::uint64_t given = 0;  // when it was given a request last: a count of requests
  };
  struct Replica {
    std::uint32_t concurrency = 0;
    std::uint32_t in_flight = 0;
    bool resting = false;
    std::vector<Process> processes;
    std::uint32_t part() const;
  };
  // A free seat: requests in it, in its replica, and when it was given one.
  struct Rank {
    std::uint32_t in_process = 0;
    std::uint32_t in_replica = 0;
    std::uint64_t given = 0;
    Seat seat;
    auto operator<=>(const Rank&) const = default;
  };
  void take_out(ReplicaId id, const Replica& replica);
  void put_in(ReplicaId id, const Replica& replica);
  Rank rank_of(ReplicaId id, const Replica& replica, std::uint32_t process) const;
  Seat take_seat();

  std::map<ReplicaId, Replica> replicas_;
  std::set<Rank> free_;
  std::set<Ticket> waiting_;
  Ticket last_ticket_ = 0;
  std::uint64_t given_ = 0;
  std::size_t in_flight_ = 0;
  std::size_t most_waiting_;
};

}  // namespace mete::proxy
