// SPDX-License-Identifier: Apache-2.0
// See card_helper.h: the helper's end. Each turn waits for its time while it serves the socket,
// reads the cards and the processes on them, publishes the readings file and sends a snapshot. It
// may block anywhere in the driver or in /proc; it must not block in sending, since the readings
// file is for others too: a message that does not fit the socket stays in the outbox, and newer
// ones are dropped.
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "node/card_helper.h"
#include "node/process_look.h"
#include "node/readings_file.h"

namespace mete::node {

namespace {

constexpr seam::Milliseconds kLimit{4000};                       // for one reading
constexpr seam::Nanoseconds kReopen = std::chrono::seconds(10);  // while a card is lost

class Helper {
 public:
  Helper(const CardHelperSettings& settings, int socket, seam::Clock& clock)
      : settings_(settings), socket_(socket), clock_(clock), period_(settings.idle_period) {}

  void run() {
    while (wait_until(next_)) {
      next_ = clock_.monotonic() + period_;
      say(Asking{});
      const Result<CardSnapshot> snapshot = read();
      if (snapshot) {
        publish(*snapshot);
        say(*snapshot);
      } else {
        driver_.reset();  // opened anew next time: the library may have been replaced
        say(snapshot.error());
      }
      // After a slow reading the full pause follows: the driver is not called faster than it
      // answers.
      if (clock_.monotonic() > next_) next_ = clock_.monotonic() + period_;
    }
  }

 private:
  Result<CardSnapshot> read() {
    if (!driver_ || (lost_ && clock_.monotonic() - opened_ > kReopen)) {
      driver_.reset();
      Result<std::unique_ptr<seam::Driver>> opened = settings_.open();
      if (!opened) return std::move(opened).error();
      driver_ = *std::move(opened);
      opened_ = clock_.monotonic();
    }
    CardSnapshot snapshot;
    snapshot.at = clock_.monotonic();
    Result<std::vector<seam::CardReading>> cards = driver_->read_all(kLimit);
    if (!cards) return std::move(cards).error();
    snapshot.cards = *std::move(cards);
    lost_ = false;
    for (const seam::CardReading& card : snapshot.cards)
      lost_ = lost_ || card.state == seam::CardState::kLost;
    if (Result<seam::DriverIdentity> identity = driver_->identity())
      snapshot.driver = *std::move(identity);
    snapshot.processes = look_.take(snapshot.cards);
    return snapshot;
  }

  // Without a file (a full disk) the runners call the driver themselves; retried each time.
  void publish(const CardSnapshot& snapshot) {
    if (settings_.readings.empty()) return;
    if (!writer_) {
      Result<ReadingsWriter> made = ReadingsWriter::make(settings_.readings);
      if (!made) return;
      writer_.emplace(*std::move(made));
    }
    writer_->publish(snapshot.cards, snapshot.at);
  }

  // Puts a message into the outbox unless the last one is still there: then the daemon sleeps, and
  // the next reading will be newer anyway.
  void say(const CardMessage& message) {
    flush();
    if (!outbox_.empty()) return;
    Result<std::string> frame = encode(message);
    if (!frame) frame = encode(frame.error());
    outbox_ = *std::move(frame);
    flush();
  }

  void flush() {
    while (!outbox_.empty()) {
      const ssize_t sent =
          send(socket_, outbox_.data(), outbox_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return;
      outbox_.erase(0, static_cast<std::size_t>(sent));
    }
  }

  // Serves the socket until `then`. False: the daemon is gone.
  bool wait_until(seam::Nanoseconds then) {
    for (;;) {
      const seam::Nanoseconds left = then - clock_.monotonic();
      const auto ms = std::chrono::ceil<seam::Milliseconds>(left).count();
      const short events = static_cast<short>(POLLIN | (outbox_.empty() ? 0 : POLLOUT));
      pollfd item{socket_, events, 0};
      const int ready = poll(&item, 1, ms > 0 ? static_cast<int>(ms) : 0);
      if (ready < 0 && errno != EINTR) return false;
      if (ready > 0) {
        if ((item.revents & POLLOUT) != 0) flush();
        if ((item.revents & ~POLLOUT) != 0) {
          const seam::Milliseconds before = period_;
          if (!listen()) return false;
          // A job has started: the next reading comes in less than a second.
          if (period_ < before) then = std::min(then, clock_.monotonic() + period_);
        }
      } else if (ready == 0 && clock_.monotonic() >= then) {
        return true;
      }
    }
  }

  bool listen() {
    std::array<char, 256> buffer;
    const ssize_t got = recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    decoder_.feed({buffer.data(), static_cast<std::size_t>(got)});
    for (;;) {
      const Result<std::optional<CardMessage>> message = decoder_.next();
      if (!message) return false;
      if (!*message) return true;
      if (const Pace* pace = std::get_if<Pace>(&**message); pace != nullptr && pace->period_ms > 0)
        period_ = seam::Milliseconds(pace->period_ms);
    }
  }

  const CardHelperSettings& settings_;
  int socket_;
  seam::Clock& clock_;
  seam::Milliseconds period_;
  seam::Nanoseconds next_{};
  seam::Nanoseconds opened_{};
  bool lost_ = false;
  std::unique_ptr<seam::Driver> driver_;
  ProcessLook look_;
  std::optional<ReadingsWriter> writer_;
  std::string outbox_;
  CardDecoder decoder_;
};

}  // namespace

void run_card_helper(const CardHelperSettings& settings, int socket, seam::Clock& clock) {
  Helper(settings, socket, clock).run();
}

}  // namespace mete::node
