// SPDX-License-Identifier: Apache-2.0
// A seam::Loop whose descriptors are real and whose time only a test moves: timers never fire by
// themselves, so a test about five seconds takes none.
#pragma once

#include <poll.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "seam/clock.h"
#include "seam/loop.h"

namespace mete::support {

class ManualLoop final : public seam::Clock {
 public:
  seam::Nanoseconds monotonic() override { return now_; }
  WallTime wall() override { return {}; }

  seam::Loop loop() {
    return {[this](int fd, std::function<void()> ready) { ready_[fd] = std::move(ready); },
            [this](int fd) { ready_.erase(fd); },
            [this](seam::Milliseconds delay, std::function<void()> then) {
              timers_.emplace(now_ + delay, std::move(then));
            }};
  }

  // Waits a little for a descriptor and calls the ready ones.
  void turn(int wait_ms = 20) {
    std::vector<pollfd> items;
    for (const auto& [fd, ready] : ready_) items.push_back({fd, POLLIN, 0});
    if (poll(items.data(), items.size(), wait_ms) <= 0) return;
    for (const pollfd& item : items) {
      const auto found = ready_.find(item.fd);
      if (item.revents == 0 || found == ready_.end()) continue;
      const std::function<void()> call = found->second;  // it may unwatch itself
      call();
    }
  }
  // Lets time pass: every timer that falls due is called, in order, at its own moment.
  void advance(seam::Milliseconds by) {
    const seam::Nanoseconds end = now_ + by;
    while (!timers_.empty() && timers_.begin()->first <= end) {
      const auto first = timers_.begin();
      now_ = std::max(now_, first->first);
      const std::function<void()> call = std::move(first->second);
      timers_.erase(first);
      call();
    }
    now_ = end;
  }
  // Time leaps, as for a process that was stopped: timers that fell due meanwhile are called now,
  // once.
  void leap(seam::Milliseconds by) {
    now_ += by;
    std::multimap<seam::Nanoseconds, std::function<void()>> due;
    due.swap(timers_);
    while (!due.empty() && due.rbegin()->first > now_)
      timers_.insert(due.extract(std::prev(due.end())));
    for (const auto& [at, call] : due) call();
  }
  // True once `done` is; false after far more turns than anything should take. `step`: how much
  // time passes between turns.
  bool until(const std::function<bool()>& done, seam::Milliseconds step = seam::Milliseconds(0)) {
    for (int i = 0; i < 3000; ++i) {
      if (done()) return true;
      turn();
      advance(step);
    }
    return done();
  }
  std::size_t watched() const { return ready_.size(); }
  std::size_t timers() const { return timers_.size(); }

 private:
  // Begins at the machine's own time, which other processes use in what they send.
  seam::Nanoseconds now_ = seam::system_clock().monotonic();
  std::map<int, std::function<void()>> ready_;
  std::multimap<seam::Nanoseconds, std::function<void()>> timers_;
};

}  // namespace mete::support
