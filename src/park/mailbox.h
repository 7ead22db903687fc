// SPDX-License-Identifier: Apache-2.0
// How the mover's threads communicate: queues of values; nothing else is shared. A worker sleeps on
// its queue; the loop sleeps in poll(2) and is woken through an eventfd.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace mete::park {

template <typename T>
class Mailbox {
 public:
  void put(T value) {
    {
      const std::lock_guard<std::mutex> hold(mutex_);
      values_.push_back(std::move(value));
    }
    filled_.notify_one();
  }
  // Waits for the next one.
  T take() {
    std::unique_lock<std::mutex> hold(mutex_);
    filled_.wait(hold, [this] { return !values_.empty(); });
    return pop();
  }
  std::optional<T> try_take() {
    const std::lock_guard<std::mutex> hold(mutex_);
    if (values_.empty()) return std::nullopt;
    return pop();
  }

 private:
  T pop() {
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }

  std::mutex mutex_;  // of values_; nothing is called while it is held
  std::condition_variable filled_;
  std::deque<T> values_;
};

// Makes the loop look into its mailboxes.
class Bell {
 public:
  explicit Bell(int eventfd) : eventfd_(eventfd) {}
  void ring() const;

 private:
  int eventfd_;
};

}  // namespace mete::park
