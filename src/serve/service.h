// SPDX-License-Identifier: Apache-2.0
// The door of meted: HTTP requests become inputs of the engine, its answers become responses. The
// kernel identifies the client (user, groups, process); a request never does. routes.cc has the
// table of paths, parts.h the classes behind it, one for each resource.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "serve/host.h"
#include "serve/machine_reading.h"

namespace mete::serve {

struct Parts;
struct Route;

class Service {
 public:
  Service(net::Loop& loop, seam::Clock& clock, engine::Engine& engine, Identity identity);
  ~Service();

  void handle(net::Request request, net::Responder responder);
  // /metrics, and nothing else: for a door that all users can reach.
  void handle_metrics(const net::Request& request, net::Responder responder);

  // Inputs that are no request: the end of a runner, the end of a job.
  void tell(core::Input input);
  // A new reading of the machine.
  void see(MachineReading reading);
  const MachineReading& machine() const;

  // The engine failed for good (its store did): meted ends.
  std::function<void(const Error&)> on_fatal = [](const Error&) {};
  std::function<void()> on_stop = [] {};
  // After each turn; `busy`: a job holds a grant.
  std::function<void(bool busy)> on_turn = [](bool) {};

  // Nothing waits, runs or is asked for.
  bool idle() const;

 private:
  void serve(const Route* route, net::Request request, net::Responder responder);
  void answer(const Route* route, const net::Request& request, net::Responder responder);

  engine::Engine& engine_;
  const Identity identity_;
  std::unique_ptr<Parts> parts_;
  // Requests that need the cards and came before the first reading.
  std::vector<std::pair<net::Request, net::Responder>> early_;
  bool seen_ = false;
};

}  // namespace mete::serve
