// SPDX-License-Identifier: Apache-2.0
// The door of meted: HTTP requests become inputs of the engine, its answers become responses. The
// kernel identifies the client (user, groups, process); a request never does. routes.cc has the
// table of paths, parts.h the classes behind it, one for each resource.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "net/http_server.h"
#include "net/loop.h"
#include "serve/daemon_status.h"
#include "serve/host.h"
#include "serve/machine_reading.h"

namespace mete::serve {

struct Call;
struct Parts;
struct Route;

class Service {
 public:
  Service(net::Loop& loop, seam::Clock& clock, engine::Engine& engine, Identity identity);
  ~Service();

  void handle(net::Request request, net::Responder responder);
  // /metrics, and nothing else: for an address that all users can reach.
  void handle_metrics(const net::Request& request, net::Responder responder);

  // The daemon has other settings.
  void set_identity(Identity identity) { identity_ = std::move(identity); }

  // Inputs that are not requests: the end of a runner, the end of a job.
  void tell(core::Input input);
  // A new reading of the machine.
  void see(MachineReading reading);
  const MachineReading& machine() const;

  // The engine failed for good (its store did): meted ends.
  std::function<void(const Error&)> on_fatal = [](const Error&) {};
  std::function<void()> on_stop = [] {};
  // Reads the configuration again, and says what has changed; invalid: it has a mistake.
  std::function<Result<wire::ReloadView>()> on_reload = [] { return wire::ReloadView(); };
  // Makes a copy of the state at this path; the function is called once, with what came of it.
  OnBackup on_backup = [](const std::string&, const auto& done) { done(wire::BackupView()); };
  // After each turn; `busy`: a job holds a grant.
  std::function<void(bool busy)> on_turn = [](bool) {};

  // Nothing waits, runs or is requested.
  bool idle() const;

 private:
  void serve(const Route* route, net::Request request, net::Responder responder);
  void answer(const Route* route, const net::Request& request, net::Responder responder);
  // Why the caller may not have what it asks for of this job.
  std::optional<Error> refusal(const Route& route, const Call& call) const;

  engine::Engine& engine_;
  Identity identity_;
  std::unique_ptr<Parts> parts_;
  // Requests that need the cards and came before the first reading.
  std::vector<std::pair<net::Request, net::Responder>> early_;
  bool seen_ = false;
};

}  // namespace mete::serve
