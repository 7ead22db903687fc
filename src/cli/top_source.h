// SPDX-License-Identifier: Apache-2.0
// Snapshots from the daemon, one after the other, without ever waiting for one: the last stays
// until the next has come. A daemon that goes away is found again when it is back; none is started.
#pragma once

#include <optional>
#include <string>

#include "cli/daemon_client.h"
#include "seam/clock.h"
#include "wire/snapshot.h"

namespace mete::cli {

class TopSource {
 public:
  explicit TopSource(DaemonClient client)
      : client_(std::move(client)), socket_(client_->http().path()) {}

  // The daemon's own document, for programs; waits for it.
  Result<std::string> document();

  // Asks, unless an answer is still awaited.
  void ask();
  // Readable: something has come. -1: nothing is awaited.
  int descriptor() const { return asked_ ? client_->http().descriptor() : -1; }
  // Takes what has come; whether there is a new snapshot. `most`: how long to wait for it.
  bool hear(net::Milliseconds most = net::Milliseconds(0));

  const std::optional<wire::Snapshot>& snapshot() const { return snapshot_; }
  // Why what is there is old; "": it is not.
  std::string trouble() const;
  // What the daemon answered that was no snapshot, and will not be one: another version of it.
  const std::optional<Error>& refusal() const { return refusal_; }

  const std::string& socket() const { return socket_; }

 private:
  void lost(std::string why);

  std::optional<DaemonClient> client_;  // nullopt: it is away
  std::string socket_;
  bool asked_ = false;
  std::optional<seam::Nanoseconds> asked_at_;
  std::optional<seam::Nanoseconds> history_at_;  // when it was last asked for
  std::optional<seam::Nanoseconds> heard_at_;
  std::string away_;  // why
  std::optional<wire::Snapshot> snapshot_;
  std::optional<Error> refusal_;
};

}  // namespace mete::cli
