// SPDX-License-Identifier: Apache-2.0
// The event loop of meted: one thread, everything happens in callbacks of run(). Posted functions,
// timers on the monotonic clock, and descriptors that become ready. A Timer or a Watch cancels when
// it is destroyed: its function is not called afterwards, even if it was already due. They may
// outlive the Loop (and then do nothing). Only the thread of run() may touch any of this.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "base/result.h"

namespace mete::net {

using Milliseconds = std::chrono::milliseconds;

class Timer {
 public:
  Timer() = default;  // holds nothing

  bool active() const { return state_ != nullptr; }
  void cancel() { state_.reset(); }

 private:
  friend class Loop;
  struct State;
  std::shared_ptr<State> state_;
};

// What a descriptor is watched for. kHangup: the other end is closed completely (EPOLLHUP,
// EPOLLERR), reported even while unread bytes wait; it may be reported for urgent bytes (EPOLLPRI)
// too, so check again with poll(2). The values are a mask.
enum Ready : unsigned { kReadable = 1, kWritable = 2, kHangup = 4 };

class Watch {
 public:
  Watch() = default;  // holds nothing
  Watch(Watch&&) noexcept = default;
  Watch& operator=(Watch&& other) noexcept {
    if (this != &other) {
      cancel();
      state_ = std::move(other.state_);
    }
    return *this;
  }
  ~Watch() { cancel(); }

  bool active() const { return state_ != nullptr; }
  // Watches for these from now on; 0 pauses.
  void want(unsigned ready);
  // When it returns, the descriptor may be closed and its number may be reused and watched anew,
  // even from inside the function that is called.
  void cancel();

 private:
  friend class Loop;
  struct State;
  std::shared_ptr<State> state_;
};

class Loop {
 public:
  using Function = std::function<void()>;

  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Returns after stop(); may be called again. Due functions that were not run stay for the next
  // run.
  void run();
  void stop();

  // Calls it once from run(), after everything posted before, never from inside post().
  void post(Function function);
  // Calls it once, `delay` from now.
  [[nodiscard]] Timer after(Milliseconds delay, Function function);
  // Calls it every `period` (more than 0). A loop that was late catches up with one call, not
  // several.
  [[nodiscard]] Timer every(Milliseconds period, Function function);
  // Calls it with one of Ready for as long as that is true (level-triggered). The descriptor stays
  // the caller's: cancel before closing it. Works for sockets, pipes, pidfds, signalfds; not for
  // plain files, which are always ready. Each descriptor once.
  Result<Watch> watch(int descriptor, unsigned ready, std::function<void(Ready)> function);

 private:
  friend class Timer;
  friend class Watch;
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace mete::net
