// SPDX-License-Identifier: Apache-2.0
// A daemon that is asked for what may be asked for twice (a submit with its key, park, unpark):
// when it goes away before it has answered, it is found again at the same socket (started, where it
// is ours to start) and asked once more. A daemon that stays away is given up after a minute or
// two; one that is ours and does not start, after a few tries. stderr is told.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/daemon_client.h"
#include "cli/output.h"

namespace mete::cli {

class RetryingClient {
 public:
  RetryingClient(DaemonClient client, const Output& output)
      : client_(std::move(client)),
        socket_(client_->http().path()),
        may_start_(client_->may_start()),
        output_(output) {}

  // As DaemonClient::call. `wait.interrupt` also ends the wait for the daemon's return.
  Result<std::string> call(std::string_view method, const std::string& target,
                           std::string_view body = {},
                           const net::Wait& wait = DaemonClient::kPatience);
  // The same, and never a second time.
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

 private:
  Result<std::string> ask(std::string_view method, const std::string& target, std::string_view body,
                          const net::Wait& wait);
  bool try_again(const Error& error, int failures, const net::Wait& wait);

  std::optional<DaemonClient> client_;  // nullopt: it is away
  std::string socket_;
  bool may_start_;
  bool repeated_ = false;
  bool unknown_ = false;
  const Output& output_;
};

}  // namespace mete::cli
