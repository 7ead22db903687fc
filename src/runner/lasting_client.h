// SPDX-License-Identifier: Apache-2.0
// A daemon that goes away is found again at the same socket (started, where it is ours to start)
// and asked once more: for questions, and for what may be asked twice (a submit with its key, park,
// unpark). `talk` is told that it is away.
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

  // As DaemonClient::call. `wait.interrupt` also ends the wait for the daemon's return. A daemon
  // that stays away is given up after a minute or two; one that is ours and does not start, after a
  // few tries.
  Result<std::string> call(std::string_view method, const std::string& target,
                           std::string_view body = {},
                           const net::Wait& wait = DaemonClient::kPatience);
  // As call, and never a second time.
  Result<std::string> call_once(std::string_view method, const std::string& target,
                                std::string_view body, const net::Wait& wait);
  // The rest of a call that was interrupted.
  Result<std::string> receive(const net::Wait& wait);
  // The next call hangs up on what is not answered yet.
  void abandon();

  // Of the last call: it was sent more than once, so that what it asks for may have been done
  // before it was answered.
  bool repeated() const { return repeated_; }
  // Of the last call: whether the daemon has done it is not known.
  bool unknown() const { return unknown_; }
  bool interrupted() const {
    return client_ && client_->http().stopped() == net::HttpClient::Stopped::kInterrupted;
  }
  bool silent() const { return client_ && client_->silent(); }
  const std::string& socket() const { return socket_; }

  // GET, for waiting beside other things: after begin() the answer comes with one of the calls
  // of next(), which wait about `most` for it (nullopt: not yet). descriptor() is readable when
  // there is something to hear; -1: the daemon is away, or has not been asked yet: call next().
  // A daemon that stays away is given up after about ten minutes.
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

  std::optional<DaemonClient> client_;  // nullopt: it is away
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
