// SPDX-License-Identifier: Apache-2.0
// Snapshots from the daemon, one after the other, without ever waiting for one: the last stays
// until the next has come. They come as a stream of events; a daemon that answers with one document
// instead is asked again and again, one whose stream is silent is asked why. A daemon that goes
// away is found again when it is back; none is started.
#pragma once

#include <optional>
#include <string>

#include "net/event_stream.h"
#include "runner/daemon_client.h"
#include "seam/clock.h"
#include "wire/snapshot.h"

namespace mete::cli {

class TopSource {
 public:
  // A snapshot each `every`; the daemon has no more than four a second.
  TopSource(runner::DaemonClient client, net::Milliseconds every)
      : client_(std::move(client)), socket_(client_->http().path()), every_(every) {}

  // The daemon's own document, for programs; waits for it.
  Result<std::string> document();
  // Waits for the first snapshot; call it before the rest. What it returns ends the program.
  Result<void> begin(net::Milliseconds most);

  // Does what is due: asks, or looks whether the daemon is back. Never waits.
  void tend();
  // Until tend() has something to do, at the latest.
  net::Milliseconds until_due() const;
  // Readable: something has come. -1: the daemon is away.
  int descriptor() const { return awaits() ? client_->http().descriptor() : -1; }
  // Takes what has come; whether there is a new snapshot.
  bool hear();

  const std::optional<wire::Snapshot>& snapshot() const { return snapshot_; }
  // The last one, once there is one, for what only a screen wants to know.
  wire::Snapshot& last() { return *snapshot_; }
  // Why what is there is old; "": it is not.
  std::string trouble() const;
  // What the daemon answered that was no snapshot, and will not be one: another version of it.
  const std::optional<Error>& refusal() const { return refusal_; }

  const std::string& socket() const { return socket_; }

 private:
  enum class State {
    kRests,   // something is due at due_at_
    kAsked,   // for a stream: its head is awaited
    kStream,  // events come
    kWhole,   // one document is awaited
  };
  bool awaits() const { return state_ != State::kRests; }
  void ask(bool stream);
  bool hear_head();
  bool hear_events();
  bool hear_whole(net::Milliseconds most);
  bool take(const std::string& document);
  void rest(net::Milliseconds pause);
  void lost();

  std::optional<runner::DaemonClient> client_;  // nullopt: it is away
  std::string socket_;
  net::Milliseconds every_;
  State state_ = State::kRests;
  net::EventStream events_;
  bool fed_ = false;              // this stream has brought something
  seam::Nanoseconds due_at_{0};   // in kRests
  seam::Nanoseconds late_at_{0};  // else: when it is said that nothing comes
  std::optional<seam::Nanoseconds> heard_at_;
  std::string away_;  // why nothing comes
  std::optional<wire::Snapshot> snapshot_;
  std::optional<Error> refusal_;
};

}  // namespace mete::cli
