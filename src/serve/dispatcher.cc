// SPDX-License-Identifier: Apache-2.0
// See dispatcher.h. A slice and a turn are each a function that is posted to the loop, at most one
// of either kind at a time: a slice takes work from the queue until its time is over or the next
// turn has enough inputs; the turn passes these to the engine and delivers the answers.
#include "serve/dispatcher.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace mete::serve {

namespace {

// A timer for a distant time is set anew now and then: the clock may be set meanwhile.
constexpr std::int64_t kLongestSleepMs = 60'000;
// A slice ends after this time, so that the loop can take new requests.
constexpr std::chrono::milliseconds kSliceTime{2};
// The most inputs of one turn of the engine.
constexpr std::size_t kMostAsked = 64;

}  // namespace

Dispatcher::Dispatcher(net::Loop& loop, seam::Clock& clock, engine::Engine& engine)
    : loop_(loop), clock_(clock), engine_(engine), queue_([this] { schedule_work(); }) {}

template <class Function>
void Dispatcher::measured(Function function) {
  const seam::Nanoseconds begun = clock_.monotonic(), computed = clock_.computed();
  function();
  const seam::Nanoseconds took = clock_.monotonic() - begun;
  times_.all.add(took);
  times_.longest = std::max(times_.longest, took);
  times_.longest_computed = std::max(times_.longest_computed, clock_.computed() - computed);
}

// ---- slices of work ----------------------------------------------------------------------------

void Dispatcher::add(uid_t user, AnswerSize size, std::function<void()> work) {
  WorkQueue::Work placed = [this, work = std::move(work)](const WorkQueue::Place& place) {
    place_ = place;
    work();
    place_.reset();
  };
  if (size == AnswerSize::kLarge)
    queue_.add_large(user, std::move(placed));
  else
    queue_.add(user, std::move(placed));
  schedule_work();
}

void Dispatcher::schedule_work() {
  if (std::exchange(work_scheduled_, true)) return;
  loop_.post([this] { work(); });
}

void Dispatcher::work() {
  work_scheduled_ = false;
  measured([this] {
    const seam::Nanoseconds begun = clock_.monotonic();
    while (asked_.size() < kMostAsked) {
      std::optional<std::function<void()>> next = queue_.next();
      if (!next) return;
      (*next)();
      if (clock_.monotonic() - begun >= kSliceTime) break;
    }
    if (!queue_.empty()) schedule_work();
  });
}

// ---- turns of the engine -----------------------------------------------------------------------

void Dispatcher::ask(core::Input input, Answered answered,
                     std::vector<std::pair<std::string, std::string>> blobs) {
  const std::uint64_t ticket = answered ? ++last_ticket_ : 0;
  if (answered) unanswered_.emplace(ticket, std::move(answered));
  asked_.push_back({ticket, std::move(input), std::move(blobs)});
  schedule_turn();
}

void Dispatcher::schedule_turn() {
  if (std::exchange(turn_scheduled_, true)) return;
  loop_.post([this] { measured([this] { take_turn(); }); });
}

void Dispatcher::take_turn() {
  turn_scheduled_ = false;
  Result<std::vector<engine::Answer>> answers = engine_.turn(std::exchange(asked_, {}));
  if (!answers) {
    on_fatal(answers.error());
    return;
  }
  for (engine::Answer& answer : *answers) {
    const auto found = unanswered_.find(answer.ticket);
    if (found == unanswered_.end()) continue;
    const Answered answered = std::move(found->second);
    unanswered_.erase(found);
    answered(std::move(answer));
  }
  after_turn();
  if (engine_.again()) schedule_turn();
  wake_for_time();
}

void Dispatcher::wake_for_time() {
  const std::optional<WallTime> next = engine_.next_change();
  if (next == alarm_at_ && next) return;
  alarm_at_ = next;
  if (!next) return;
  const std::int64_t ms = std::clamp<std::int64_t>(next->ms - clock_.wall().ms, 1, kLongestSleepMs);
  alarm_ = loop_.after(seam::Milliseconds(ms), [this] {
    alarm_at_.reset();
    tell(core::Look{});
  });
}

}  // namespace mete::serve
