// SPDX-License-Identifier: Apache-2.0
// A daemon that is asked for a long time: when it goes away it is found again at the same socket
// (started, where it is ours to start) and asked once more. For questions only, which may be asked
// twice. One that stays away is given up after about ten minutes.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/daemon_client.h"
#include "cli/output.h"

namespace mete::cli {

class LastingClient {
 public:
  LastingClient(DaemonClient client, const Output& output)
      : client_(std::move(client)),
        socket_(client_->http().path()),
        may_start_(client_->may_start()),
        output_(output) {}

  // GET, for waiting beside other things: after begin() the answer comes with one of the calls
  // of next(), which wait about `most` for it (nullopt: not yet). descriptor() is readable when
  // there is something to hear; -1: the daemon is away, or has not been asked yet: call next().
  void begin(std::string target);
  std::optional<Result<std::string>> next(net::Milliseconds most);
  int descriptor() const { return sent_ ? client_->http().descriptor() : -1; }

 private:
  std::optional<Error> lost(Error error, net::Milliseconds most);

  std::optional<DaemonClient> client_;  // nullopt: it is away
  std::string socket_;
  bool may_start_;
  std::string target_;
  bool sent_ = false;
  int failures_ = 0;
  const Output& output_;
};

}  // namespace mete::cli
