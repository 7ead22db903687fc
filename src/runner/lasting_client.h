// SPDX-License-Identifier: Apache-2.0
// A client that survives a restart of the daemon: it finds the daemon again at the same socket (and
// starts it if it is ours to start) and repeats the request. For questions, and for requests that
// may be repeated (a submit with its key, park, unpark). Tells `talk` that the daemon is away.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "runner/daemon_client.h"
#include "runner/talk.h"

namespace mete::runner {

class LastingClient {
 public:
  LastingClient(DaemonClient client, Talk talk)
      : client_(std::move(client)),
        socket_(client_->http().path()),
        may_start_(client_->may_start()),
        talk_(std::move(talk)) {}

  // As DaemonClient::call. `wait.interrupt` also ends the wait for the daemon's return. Gives up on
  // a daemon that stays away after a minute or two; on one of our own that does not start, after a
  // few tries.
  Result<std::string> call(std::string_view method, const std::string& target,
                           std::string_view body = {},
                           const net::Wait& wait = DaemonClient::kPatience);
  // As call(), but sends the request only once.
  Result<std::string> call_once(std::string_view method, const std::string& target,
                                std::string_view body, const net::Wait& wait);
  // The rest of a call that was interrupted.
  Result<std::string> receive(const net::Wait& wait);
  // The next call drops an answer that is still due.
  void abandon();

  // Whether the last call was sent more than once, so that its request may have been carried out
  // before it was answered.
  bool repeated() const { return repeated_; }
  // Whether it is unknown if the daemon carried out the last call.
  bool unknown() const { return unknown_; }
  bool interrupted() const {
    return client_ && client_->http().stopped() == net::HttpClient::Stopped::kInterrupted;
  }
  bool silent() const { return client_ && client_->silent(); }
  const std::string& socket() const { return socket_; }

  // GET, for waiting on several descriptors: after begin() one of the calls of next() returns the
  // answer; each waits about `most` for it (nullopt: not yet). descriptor() is readable when there
  // is something to read; -1: the daemon is away, or has not been asked yet: call next(). Gives up
  // after about ten minutes without a daemon.
  void begin(std::string target);
  std::optional<Result<std::string>> next(net::Milliseconds most);
  int descriptor() const { return sent_ ? client_->http().descriptor() : -1; }

 private:
  Result<void> find_again(int interrupt = -1);
  Result<std::string> ask(std::string_view method, const std::string& target, std::string_view body,
                          const net::Wait& wait);
  Result<std::string> heard(Result<std::string> answer);
  bool try_again(const Error& error, int failures, const net::Wait& wait);
  std::optional<Error> lost(Error error, net::Milliseconds most);

  std::optional<DaemonClient> client_;  // nullopt: the daemon is away
  std::string socket_;
  bool may_start_;
  Talk talk_;
  bool repeated_ = false;
  bool unknown_ = false;
  std::string target_;  // of begin()
  bool sent_ = false;
  int failures_ = 0;
};

}  // namespace mete::runner
