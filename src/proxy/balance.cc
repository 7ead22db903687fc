// SPDX-License-Identifier: Apache-2.0
// See balance.h. free_ has each seat that may take one more request, the next one first; a change
// of a replica takes its seats out and puts them back in with their new rank.
#include "proxy/balance.h"

#include "base/assert.h"

namespace mete::proxy {

std::uint32_t Balancer::Replica::part() const {
  const auto count = static_cast<std::uint32_t>(processes.size());
  return concurrency / count + (concurrency % count != 0 ? 1 : 0);
}

Balancer::Rank Balancer::rank_of(ReplicaId id, const Replica& replica,
                                 std::uint32_t process) const {
  const Process& one = replica.processes[process];
  return {one.in_flight, replica.in_flight, one.given, {id, process}};
}

void Balancer::take_out(ReplicaId id, const Replica& replica) {
  for (std::uint32_t i = 0; i < replica.processes.size(); ++i) free_.erase(rank_of(id, replica, i));
}

void Balancer::put_in(ReplicaId id, const Replica& replica) {
  if (replica.resting || replica.in_flight >= replica.concurrency) return;
  for (std::uint32_t i = 0; i < replica.processes.size(); ++i)
    if (replica.processes[i].in_flight < replica.part()) free_.insert(rank_of(id, replica, i));
}

void Balancer::set_replica(ReplicaId id, std::uint32_t processes, std::uint32_t concurrency) {
  METE_ASSERT(processes > 0);
  const auto [at, fresh] = replicas_.try_emplace(id);
  Replica& replica = at->second;
  if (fresh) replica.processes.resize(processes);
  METE_ASSERT(replica.processes.size() == processes);
  take_out(id, replica);
  replica.concurrency = concurrency;
  put_in(id, replica);
}

void Balancer::set_resting(ReplicaId id, bool resting) {
  const auto found = replicas_.find(id);
  if (found == replicas_.end()) return;
  take_out(id, found->second);
  found->second.resting = resting;
  put_in(id, found->second);
}

void Balancer::remove_replica(ReplicaId id) {
  const auto found = replicas_.find(id);
  if (found == replicas_.end()) return;
  take_out(id, found->second);
  in_flight_ -= found->second.in_flight;
  replicas_.erase(found);
}

Seat Balancer::take_seat() {
  const Seat seat = free_.begin()->seat;
  Replica& replica = replicas_.at(seat.replica);
  take_out(seat.replica, replica);
  Process& process = replica.processes[seat.process];
  ++process.in_flight;
  process.given = ++given_;
  ++replica.in_flight;
  ++in_flight_;
  put_in(seat.replica, replica);
  return seat;
}

Balancer::Answer Balancer::ask() {
  // Who waits already is first, also where give() was not called yet.
  if (waiting_.empty() && !free_.empty()) return {take_seat(), std::nullopt};
  if (waiting_.size() >= most_waiting_) return {};
  waiting_.insert(waiting_.end(), ++last_ticket_);
  return {std::nullopt, last_ticket_};
}

void Balancer::finish(Seat seat) {
  const auto found = replicas_.find(seat.replica);
  METE_ASSERT(found != replicas_.end());
  Replica& replica = found->second;
  Process& process = replica.processes.at(seat.process);
  METE_ASSERT(process.in_flight > 0);
  take_out(seat.replica, replica);
  --process.in_flight;
  --replica.in_flight;
  --in_flight_;
  put_in(seat.replica, replica);
}

std::optional<Balancer::Given> Balancer::give() {
  if (waiting_.empty() || free_.empty()) return std::nullopt;
  const Ticket ticket = *waiting_.begin();
  waiting_.erase(waiting_.begin());
  return Given{ticket, take_seat()};
}

std::size_t Balancer::in_replica(ReplicaId id) const {
  const auto found = replicas_.find(id);
  return found == replicas_.end() ? 0 : found->second.in_flight;
}

}  // namespace mete::proxy
