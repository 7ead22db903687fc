// SPDX-License-Identifier: Apache-2.0
// The client of meted: finds it, starts a private one where none answers, and turns its answers
// into values or the Error that it sent. With METE_SIM the daemon is a separate one in the
// simulation's folder: simulated and real cards never meet.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "net/daemon_start.h"
#include "net/http_client.h"
#include "wire/cards.h"

namespace mete::runner {

// The state folder and the daemon's sockets.
struct DaemonPlace {
  std::string state_dir;
  net::DaemonPlaces places;
};
Result<DaemonPlace> daemon_place();

// A daemon that was found before. It may have moved since: its state folder says where it is now.
struct DaemonAt {
  std::string socket;
  std::string state_dir = {};  // "": that of daemon_place()
};

// For an error of open() or call(): there is no daemon, as opposed to one that answers badly.
inline bool nobody_listens(const Error& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kBusy;
}

// invalid: the daemon simulates other cards than METE_SIM names.
Result<void> check_simulation(const std::string& of_daemon);
// check_simulation() with the daemon's description of itself. An older daemon does not say what it
// simulates.
Result<void> check_told_simulation(const wire::DaemonView& daemon);

class DaemonClient {
 public:
  enum class Start { kIfNeeded, kNever };
  // `interrupt`: a descriptor (signalfd); readable: stop waiting.
  static Result<DaemonClient> open(Start start, int interrupt = -1);
  // For questions about jobs: the running daemon, or a new one where a private daemon has left jobs
  // behind (it exits when idle, and can be killed). not_found: neither exists, so there are no
  // jobs; with any other error it is unknown whether there are jobs (busy: the system daemon is
  // down).
  static Result<DaemonClient> open_for_jobs();
  // The daemon at this socket, which knows our job, and no other: job 2 of a private daemon is not
  // job 2 of the system daemon. A daemon that we must not start (may_start) is not started. kNever:
  // does not wait for a daemon that is recreating its socket; retry.
  static Result<DaemonClient> open_again(const DaemonAt& where, Start start, int interrupt = -1);
  bool may_start() const;
  // Asks the daemon, but only with METE_SIM set: otherwise there is nothing to confuse.
  Result<void> check_simulated();

  // The document type to request from now on, where there are several: "text/...".
  void accept(std::string type) { http_.accept(std::move(type)); }

  // The body of a successful answer. Errors: what the daemon said; busy when it is gone; io when it
  // does not answer in time, and then silent().
  Result<std::string> call(std::string_view method, const std::string& target,
                           std::string_view body = {}, const net::Wait& wait = kPatience);
  // call() in two steps, for waiting on several descriptors.
  Result<void> send(std::string_view method, const std::string& target) {
    return http_.send(method, target);
  }
  Result<std::string> receive(const net::Wait& wait);

  // Whether the last call failed because the daemon is gone, and not by its answer.
  bool went_away() const { return went_away_; }

  // Whether the last call timed out: the next one would wait as long again.
  bool silent() const { return http_.stopped() == net::HttpClient::Stopped::kTimeout; }

  // Whether the daemon had too many clients and did not read the request. call() retries for as
  // long as it may wait, or half a minute.
  bool turned_away() const { return turned_away_; }

  net::HttpClient& http() { return http_; }
  const net::HttpClient& http() const { return http_; }

  static const net::Wait kPatience;

 private:
  static Result<DaemonClient> open_at(const DaemonPlace& place, Start start, int interrupt,
                                      const net::ConnectLimits& limits = {});
  explicit DaemonClient(net::HttpClient http) : http_(std::move(http)) {}

  Result<std::string> body_of(Result<net::HttpClient::Reply> reply);

  net::HttpClient http_;
  bool went_away_ = false;
  bool turned_away_ = false;
};

}  // namespace mete::runner
