// SPDX-License-Identifier: Apache-2.0
// A client's connection with its sockets: the client's, and the replica's while a request is there.
// Implementation of server.h.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "net/loop.h"
#include "proxy/balance.h"
#include "proxy/model_field.h"
#include "proxy/relay.h"
#include "proxy/server.h"
#include "proxy/spool.h"

namespace mete::proxy {

class Session;

struct Service {
  explicit Service(std::size_t queue) : balancer(queue) {}
  Balancer balancer;
  std::map<Seat, std::uint16_t> ports;
  std::map<Seat, std::vector<Fd>> pool;  // idle connections; the last one was used last
  std::map<Ticket, Session*> waiting;
  ReplicaId newest = 0;
  std::map<ReplicaId, net::Timer> resting;
};

struct ProxyServer::Impl {
  Impl(net::Loop& its_loop, seam::Clock& its_clock, Router& its_router, Limits its_limits)
      : loop(its_loop),
        clock(its_clock),
        router(its_router),
        limits(std::move(its_limits)),
        scratch(32 << 10, '\0') {}

  struct Door;
  void accept_on(Door& door);
  std::shared_ptr<Service> find(const std::string& name) const;
  // Gives free seats to requests that wait.
  void give(const std::shared_ptr<Service>& service);
  // Of a replica that does not take connections.
  void rest(const std::shared_ptr<Service>& service, ReplicaId replica);
  // Not from within a function of another session.
  void step_later(Session& session);
  void forget(Session* session);
  void look_for_end();

  net::Loop& loop;
  seam::Clock& clock;
  Router& router;
  Limits limits;
  std::string scratch;  // receive buffer, for all connections
  struct Door {
    Fd socket;
    net::Watch watch;
    net::Timer timer;  // while there are no descriptors for clients
  };
  std::list<Door> doors;
  std::map<std::string, std::shared_ptr<Service>> services;
  std::map<Session*, std::shared_ptr<Session>> sessions;
  bool draining = false;
  std::function<void()> when_drained;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(ProxyServer::Impl& server, Fd socket);
  Result<void> start();
  // The request that waits has a seat now. step() follows.
  void take_seat(Seat seat);
  void step();
  // The service is gone, or the time is over.
  void give_up(int status, std::string_view why);

 private:
  seam::Nanoseconds now() const { return server_.clock.monotonic(); }
  void client_ready(net::Ready ready);
  void replica_ready(net::Ready ready);
  void read_client();
  void read_replica();
  bool advance();
  bool collect();
  void follow(Route route);
  void ask();
  bool try_another();
  void connect(bool may_reuse);
  void send_body();
  void leave_queue();
  void leave_replica();
  void replica_lost(bool broken = false);
  void reply(const Route& route);
  void write_client();
  void write_replica();
  void watch();
  void set_timer();
  void look_at_time();
  net::Milliseconds deadline() const;
  void close(bool reset);
  std::string timing() const;

  ProxyServer::Impl& server_;
  Relay relay_;
  Fd client_;
  net::Watch client_watch_;
  unsigned client_wants_ = 0;

  std::shared_ptr<Service> service_;
  std::string target_;
  Spool body_;  // that was collected
  std::uint64_t body_sent_ = 0;
  std::unique_ptr<ModelField> model_;
  std::optional<Ticket> ticket_;
  std::optional<Seat> seat_;
  Fd replica_;
  net::Watch replica_watch_;
  unsigned replica_wants_ = 0;
  bool connecting_ = false;
  bool pooled_ = false;  // the connection was used before
  bool forwarded_ = false;
  int tries_ = 0;  // replicas that did not take the connection

  net::Timer timer_;
  seam::Nanoseconds timer_due_{};
  seam::Nanoseconds since_{};   // the present wait
  seam::Nanoseconds asked_{};   // the request was whole, as far as it is needed
  seam::Nanoseconds seated_{};  // it got its seat
  bool stepping_ = false;
  bool closed_ = false;
};

}  // namespace mete::proxy
