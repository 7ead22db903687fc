// SPDX-License-Identifier: Apache-2.0
// The sockets of mete-proxy, on the loop's thread: clients on listening sockets, replicas on ports
// of this machine. What bytes mean is decided by Relay, who gets a request by Balancer, where it
// goes by the Router; here are connections, deadlines and the pool of idle connections to replicas.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "net/loop.h"
#include "proxy/balance.h"
#include "proxy/head.h"
#include "seam/clock.h"

namespace mete::proxy {

// Where a request goes.
struct Route {
  // A service, and the target as its replica is to see it.
  std::string service;
  std::string target;
  // Or the service of the model that the body names: the body is read first, at most so much.
  bool by_model = false;
  std::uint64_t body_limit = 0;
  // Or an answer of our own.
  int status = 0;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

class Router {
 public:
  virtual ~Router() = default;
  virtual Route route(const RequestHead& head) = 0;
  // Of a request that was read for its model; "" where the body names none, and why.
  virtual Route route_model(const RequestHead& head, const Result<std::string>& model) = 0;
  // The answer where the service has no room, no replica, or one that does not answer: 502, 503,
  // 504.
  virtual Route refuse(const RequestHead& head, int status, std::string_view why) = 0;
};

class ProxyServer {
 public:
  using Milliseconds = net::Milliseconds;
  struct Limits {
    std::size_t connections = 8192;
    Milliseconds head_time{10'000};    // from the first byte of a head to its last
    Milliseconds idle{60'000};         // between requests
    Milliseconds connect{5'000};       // to a replica
    Milliseconds rest{1'000};          // of a replica that does not take connections
    Milliseconds hold{120'000};        // a request waits for a replica
    Milliseconds write_stall{60'000};  // a client reads nothing of its answer
    Milliseconds body_stall{60'000};   // a client sends nothing of its request's body
    Milliseconds tunnel{3'600'000};    // nothing passes through a WebSocket
    Milliseconds comment{15'000};      // silence in an event stream
    std::size_t pooled = 64;           // idle connections of a replica's process
    std::string spool = "/tmp";        // of bodies above 1 MiB that are read for their model
  };

  ProxyServer(net::Loop& loop, seam::Clock& clock, Router& router, Limits limits);
  ~ProxyServer();
  ProxyServer(const ProxyServer&) = delete;
  ProxyServer& operator=(const ProxyServer&) = delete;

  // Accepts clients on this socket, which listens already.
  Result<void> listen_on(Fd listening);
  // A service, or its new bound of waiting requests.
  void set_service(const std::string& name, std::size_t queue);
  // Its requests are refused from now on; those in replicas go on.
  void remove_service(const std::string& name);
  // A replica: one port of 127.0.0.1 for each process. As Balancer::set_replica. A new one has a
  // larger id than all before it: requests may still be in one that was removed.
  void set_replica(const std::string& service, ReplicaId replica,
                   const std::vector<std::uint16_t>& ports, std::uint32_t concurrency);
  // It has ended: its connections break by themselves.
  void remove_replica(const std::string& service, ReplicaId replica);

  std::size_t connections() const;
  // Requests of a service in replicas, and those that wait.
  std::size_t in_flight(const std::string& service) const;
  std::size_t waiting(const std::string& service) const;

  // No new clients; idle connections are closed; calls `done` when the last answer is out.
  void drain(std::function<void()> done);

  struct Impl;  // session.h

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace mete::proxy
