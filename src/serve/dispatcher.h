// SPDX-License-Identifier: Apache-2.0
// Divides the daemon's one thread. Requests and their later parts (the answer to a wait, the next
// events of a stream) are served in slices of a few milliseconds, the users in turn (work_queue.h).
// The inputs of one slice form one turn of the engine, with one sync.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/engine.h"
#include "net/loop.h"
#include "serve/metrics.h"
#include "serve/work_queue.h"

namespace mete::serve {

// kLarge: the answer grows with the number of jobs or cards.
enum class AnswerSize { kSmall, kLarge };

class Dispatcher {
 public:
  using Answered = std::function<void(engine::Answer)>;

  Dispatcher(net::Loop& loop, seam::Clock& clock, engine::Engine& engine);

  // Adds an input to the next turn. `answered` is called once its events are on disk.
  void ask(core::Input input, Answered answered,
           std::vector<std::pair<std::string, std::string>> blobs = {});
  // An input without an answer.
  void tell(core::Input input) { ask(std::move(input), nullptr); }

  // Does the work in one of the next slices, when it is this user's turn.
  void add(uid_t user, AnswerSize size, std::function<void()> work);
  // The place of the current work, if its answer may be large: for Response::held.
  const WorkQueue::Place& place() const { return place_; }

  // Nothing is queued, and no answer is due.
  bool idle() const { return unanswered_.empty() && asked_.empty() && queue_.empty(); }
  std::size_t waiting() const { return queue_.size(); }
  // How long the loop spent on single tasks: all of them, the longest, the longest by processor
  // time.
  const Figures::Turns& times() const { return times_; }

  // The engine failed for good (its store did).
  std::function<void(const Error&)> on_fatal = [](const Error&) {};
  // The events of the turn are on disk, and its answers are delivered.
  std::function<void()> after_turn = [] {};

 private:
  void schedule_turn();
  void take_turn();
  void schedule_work();
  void work();
  template <class Function>
  void measured(Function function);
  void wake_for_time();

  net::Loop& loop_;
  seam::Clock& clock_;
  engine::Engine& engine_;
  std::vector<engine::Asked> asked_;
  std::map<std::uint64_t, Answered> unanswered_;  // by ticket
  std::uint64_t last_ticket_ = 0;
  WorkQueue queue_;
  WorkQueue::Place place_;
  bool turn_scheduled_ = false;
  bool work_scheduled_ = false;
  net::Timer alarm_;  // the next time at which time alone changes something
  std::optional<WallTime> alarm_at_;
  Figures::Turns times_;
};

}  // namespace mete::serve
