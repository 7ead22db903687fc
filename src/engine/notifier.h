// SPDX-License-Identifier: Apache-2.0
// Which notifications are sent for which events, and how long they are retried. Notifications are
// derived from the log of events, after these are on disk: a daemon that was killed in between
// derives them again, with equal ids. The position up to which every notification was sent or given
// up is stored (`save`).
//
// Nothing here waits: daemon/courier.h delivers, and reports the result. Bounded: at a time, per
// user, waiting, and in attempts.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/job/event.h"
#include "seam/clock.h"
#include "seam/loop.h"
#include "seam/store.h"
#include "wire/notification.h"

namespace mete::engine {

struct Delivery {
  core::NotifyTarget target;
  std::uint32_t uid = 0;
  wire::Notification what;
};

class Notifier {
 public:
  static constexpr std::size_t kMaxWaiting = 256;  // including those under way
  static constexpr std::size_t kMaxWaitingOfUser = 64;
  static constexpr std::size_t kMaxAtOnce = 4;
  static constexpr std::size_t kMaxAtOnceOfUser = 2;
  // The pause after each failed attempt; then it is given up.
  static constexpr seam::Milliseconds kPauses[] = {
      seam::Milliseconds(2'000), seam::Milliseconds(8'000), seam::Milliseconds(30'000),
      seam::Milliseconds(120'000), seam::Milliseconds(600'000)};

  using Done = std::function<void(Result<void>)>;
  struct Hooks {
    std::function<Result<std::vector<seam::StoredEvent>>(std::uint64_t after, std::size_t limit)>
        events;
    std::function<const core::Job*(core::JobId)> find;  // nullptr: not kept any more
    // Begins a delivery; `done` is called once, later.
    std::function<void(const Delivery&, Done done)> deliver;
    std::function<void(std::uint64_t seq)> save;
    std::function<void(const std::string&)> log;
  };
  struct Counts {
    std::uint64_t waiting = 0;
    std::uint64_t sent = 0;
    std::uint64_t failed = 0;
    std::uint64_t dropped = 0;
    bool operator==(const Counts&) const = default;
  };

  Notifier(Hooks hooks, seam::Loop loop, seam::Clock& clock, std::string host);
  ~Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  // Starts with the event after this one.
  void begin(std::uint64_t position);
  // Something may have been recorded.
  void pump();
  Counts counts() const;

 private:
  struct Waiting {
    std::uint64_t seq = 0;
    Delivery delivery;
    unsigned tries = 0;
    bool under_way = false;
    seam::Nanoseconds not_before{};
  };

  void read_log();
  void take(const seam::StoredEvent& stored);
  void add(std::uint64_t seq, Delivery delivery);
  void start_some();
  void over(std::uint64_t number, const Result<void>& result);
  void wake_later();
  void keep_position();
  std::size_t of_user(std::uint32_t uid, bool under_way) const;
  // An earlier notification of the same job is under way to the same target: "ended" never arrives
  // before "started". One that failed and waits for its retry holds up no other.
  bool follows_another(std::uint64_t number) const;

  Hooks hooks_;
  seam::Loop loop_;
  seam::Clock& clock_;
  std::string host_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // timers outlive us
  std::map<std::uint64_t, Waiting> waiting_;  // by a number of our own, oldest first
  std::uint64_t last_number_ = 0;
  std::uint64_t read_ = 0;   // of the log
  std::uint64_t saved_ = 0;  // the position that was saved last
  bool begun_ = false;
  bool changed_ = false;                    // a delivery has ended since
  std::optional<seam::Nanoseconds> wakes_;  // a timer is set for then
  Counts counts_;
};

}  // namespace mete::engine
