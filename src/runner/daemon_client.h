// SPDX-License-Identifier: Apache-2.0
// Talking to meted: finds it, starts a private one where nobody answers, and turns its answers into
// values or the Error that it sent. With METE_SIM the daemon is one of its own, in the simulation's
// folder: simulated and real cards never meet.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "net/daemon_start.h"
#include "net/http_client.h"
#include "wire/cards.h"

namespace mete::runner {

// Where state and daemon are.
struct DaemonPlace {
  std::string state_dir;
  net::DaemonPlaces places;
};
Result<DaemonPlace> daemon_place();

// A daemon that was found before. It may have moved since: its state folder says where it is.
struct DaemonAt {
  std::string socket;
  std::string state_dir = {};  // "": as daemon_place() says
};

// Of an error of open() or call(): there is no daemon, as against one that does not answer well.
inline bool nobody_listens(const Error& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kBusy;
}

// invalid: the daemon simulates other cards than METE_SIM names.
Result<void> check_simulation(const std::string& of_daemon);
// The same of what a daemon says of itself. An older one does not say what it simulates.
Result<void> check_told_simulation(const wire::DaemonView& daemon);

class DaemonClient {
 public:
  enum class Start { kIfNeeded, kNever };
  // `interrupt`: a descriptor (signalfd); readable: stop waiting.
  static Result<DaemonClient> open(Start start, int interrupt = -1);
  // For questions about a job: the daemon that runs, or a new one where a private one has left its
  // jobs behind (it ends when idle, and can be killed). not_found: there is neither, so no job;
  // every other error: whether there are jobs is not known (busy: the machine's daemon is down).
  static Result<DaemonClient> open_for_jobs();
  // The daemon at this socket, which knows our job, and never another: job 2 of a private daemon is
  // not job 2 of the machine's. One that is not ours to start (may_start) is not started. kNever:
  // does not wait for a daemon that makes its socket anew; ask again.
  static Result<DaemonClient> open_again(const DaemonAt& where, Start start, int interrupt = -1);
  bool may_start() const;
  // Asks this daemon, with METE_SIM only: then there is something to mistake.
  Result<void> check_simulated();

  // The type of document to be asked for from now on, where there are several: "text/...".
  void accept(std::string type) { http_.accept(std::move(type)); }

  // The body of a good answer. Errors: what the daemon said; busy when it is gone; io when it does
  // not answer within the wait, and then silent().
  Result<std::string> call(std::string_view method, const std::string& target,
                           std::string_view body = {}, const net::Wait& wait = kPatience);
  // The same in two steps, for waiting beside other things.
  Result<void> send(std::string_view method, const std::string& target) {
    return http_.send(method, target);
  }
  Result<std::string> receive(const net::Wait& wait);

  // Whether the last call failed because the daemon is gone, and not by its answer.
  bool went_away() const { return went_away_; }

  // Whether the last call was not answered in time: the next one would wait as long again.
  bool silent() const { return http_.stopped() == net::HttpClient::Stopped::kTimeout; }

  // Whether it had too many clients and did not look at what was asked. call() asks again for as
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
