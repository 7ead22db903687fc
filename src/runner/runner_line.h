// SPDX-License-Identifier: Apache-2.0
// A runner's connection to its daemon: waits for news of its own job while the program runs.
// mend(), called about once a second, finds a daemon again that went away; none is ever started.
#pragma once

#include <optional>
#include <string>

#include "core/job/job.h"
#include "runner/daemon_client.h"
#include "seam/clock.h"
#include "wire/job.h"

namespace mete::runner {

class RunnerLine {
 public:
  RunnerLine(DaemonAt where, core::JobId id) : where_(std::move(where)), id_(id) {}

  // Readable when there is news; -1: there is no daemon at the moment.
  int descriptor() const { return listening_ ? client_->http().descriptor() : -1; }
  std::optional<wire::RunReply> hear();
  void mend();

 private:
  void listen();

  DaemonAt where_;
  core::JobId id_;
  std::optional<DaemonClient> client_;
  std::string tag_ = "-";
  bool listening_ = false;
  seam::Nanoseconds next_try_{};
};

}  // namespace mete::runner
