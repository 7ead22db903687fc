// SPDX-License-Identifier: Apache-2.0
// Requests that are answered later: when a job has changed since its tag (long poll), or when all
// jobs with a number have ended.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>

#include "net/http_server.h"
#include "serve/dispatcher.h"
#include "serve/host.h"
#include "serve/job_views.h"

namespace mete::serve {

class Waiters {
 public:
  Waiters(const Host& host, Dispatcher& dispatcher, JobViews& views)
      : engine_(host.engine), dispatcher_(dispatcher), views_(views) {}

  // Answers with the job as runners get it, once its tag has changed.
  void wait_for_change(core::JobId id, std::string tag, uid_t uid, net::Responder responder);
  // Answers when all jobs with this number have ended; with `any`, when one of them has.
  void wait_for_end(core::JobId id, bool any, uid_t uid, net::Responder responder);

  // After a turn: queues the answers that are due.
  void answer_due();
  bool empty() const { return waiters_.empty(); }

 private:
  struct Waiter {
    core::JobId job;
    std::optional<std::string> tag;  // absent: until the end
    bool any = false;                // one job of an array is enough
    uid_t uid = 0;
    net::Responder responder;
    std::uint64_t number = 0;
  };
  void add(Waiter waiter);
  bool is_due(const Waiter& waiter);
  void answer(const Waiter& waiter);

  engine::Engine& engine_;
  Dispatcher& dispatcher_;
  JobViews& views_;
  std::list<Waiter> waiters_;
  std::uint64_t last_number_ = 0;
  std::uint64_t answered_version_ = 0;  // of the engine
};

}  // namespace mete::serve
