// SPDX-License-Identifier: Apache-2.0
// See card_helper.h: the daemon's end. The helper is a forked process behind a socket pair; its
// frames are decoded as they arrive. A timer checks once a second whether the helper has been
// silent for too long. A helper that dies, hangs or sends an invalid frame is killed and started
// again after a pause that doubles; killed helpers that the driver still holds are reaped later.
#include "node/card_helper.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/forked.h"
#include "node/nvml_driver.h"

namespace mete::node {

OpenDriver open_nvml(std::string library) {
  return [library = std::move(library)]() -> Result<std::unique_ptr<seam::Driver>> {
    Result<std::unique_ptr<NvmlDriver>> driver = NvmlDriver::open(library);
    if (!driver) return std::move(driver).error();
    return std::unique_ptr<seam::Driver>(*std::move(driver));
  };
}

CardHelper::CardHelper(CardHelperSettings settings, seam::Loop loop, seam::Clock& clock,
                       std::function<void()> changed)
    : settings_(std::move(settings)),
      loop_(std::move(loop)),
      clock_(clock),
      changed_(std::move(changed)),
      pause_(settings_.first_pause) {
  start();
  later(kLook, &CardHelper::look);
}

CardHelper::~CardHelper() {
  *alive_ = false;
  if (pid_ > 0) {
    loop_.unwatch_fd(socket_.get());
    (void)kill(pid_, SIGKILL);
    unreaped_.push_back(pid_);
  }
  reap();
}

void CardHelper::later(seam::Milliseconds delay, void (CardHelper::*what)()) {
  loop_.after(delay, [this, what, alive = alive_] {
    if (*alive) (this->*what)();
  });
}

void CardHelper::start() {
  if (pid_ > 0) return;
  reap();
  // Helpers that no signal can end stay in the driver: their number is bounded.
  if (unreaped_.size() >= kMaxUnreaped) {
    report(Error::busy("the driver hangs").with_hint("the machine may need a reboot: see dmesg"));
    later(settings_.longest_pause, &CardHelper::start);
    return;
  }
  Result<base::Forked> forked = base::fork_around_socket("mete-nvml", [this](int socket) {
    run_card_helper(settings_, socket, seam::system_clock());
  });
  if (!forked) return restart(std::move(forked).error());
  pid_ = forked->pid;
  socket_ = std::move(forked->socket);
  decoder_ = {};
  heard_ = clock_.monotonic();
  has_read_ = false;
  told_busy_.reset();
  loop_.watch_fd(socket_.get(), [this] { on_readable(); });
  send_pace();
}

void CardHelper::set_busy(bool busy) {
  busy_ = busy;
  send_pace();
}

// If the socket is full (the helper hangs), retry when the helper sends something.
void CardHelper::send_pace() {
  if (!socket_ || told_busy_ == busy_) return;
  const auto period = (busy_ ? settings_.busy_period : settings_.idle_period).count();
  const Result<std::string> frame = encode(Pace{static_cast<std::uint32_t>(period)});
  const ssize_t sent = send(socket_.get(), frame->data(), frame->size(), MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(frame->size())) told_busy_ = busy_;
}

std::optional<seam::Nanoseconds> CardHelper::age() const {
  if (!last_) return std::nullopt;
  return std::max(clock_.monotonic() - last_->at, seam::Nanoseconds(0));
}

void CardHelper::on_readable() {
  // A loop may call once more for an event from before the unwatch.
  if (socket_ && drain()) send_pace();
}

bool CardHelper::drain() {
  // Bounded at a time: the loop has other work.
  constexpr std::size_t kMost = 8 << 20;
  std::array<char, 65536> buffer;
  for (std::size_t sum = 0; sum < kMost;) {
    const ssize_t got = recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return true;
    if (got <= 0) {
      restart(Error::io("the NVML helper died"));
      return false;
    }
    sum += static_cast<std::size_t>(got);
    heard_ = clock_.monotonic();
    decoder_.feed({buffer.data(), static_cast<std::size_t>(got)});
    for (;;) {
      Result<std::optional<CardMessage>> message = decoder_.next();
      if (!message) {
        restart(std::move(message).error());
        return false;
      }
      if (!*message) break;
      take(*std::move(*message));
    }
  }
  return true;
}

void CardHelper::take(CardMessage message) {
  if (CardSnapshot* snapshot = std::get_if<CardSnapshot>(&message)) {
    last_ = std::move(*snapshot);
    trouble_.reset();
    has_read_ = true;
    pause_ = settings_.first_pause;
    changed_();
  } else if (Error* error = std::get_if<Error>(&message)) {
    has_read_ = true;
    report(std::move(*error));
  }
}

void CardHelper::report(Error why) {
  if (trouble_ == why) return;
  trouble_ = std::move(why);
  changed_();
}

void CardHelper::restart(Error why) {
  ++restarts_;
  if (pid_ > 0) {
    loop_.unwatch_fd(socket_.get());
    socket_.reset();
    (void)kill(pid_, SIGKILL);
    unreaped_.push_back(std::exchange(pid_, -1));
  }
  later(pause_, &CardHelper::start);
  pause_ = std::min(pause_ * 2, settings_.longest_pause);
  report(std::move(why));
}

// Once a second: checks whether the helper is silent. Pending data is read first, since it may have
// been us who slept.
void CardHelper::look() {
  later(kLook, &CardHelper::look);
  reap();
  if (pid_ < 0 || !drain()) return;
  const seam::Milliseconds limit = has_read_ ? settings_.silence : settings_.first_silence;
  if (clock_.monotonic() - heard_ < limit) return;
  restart(Error::busy("the driver does not answer")
              .with_evidence("no reading for " + std::to_string(limit.count() / 1000) + " s"));
}

void CardHelper::reap() {
  std::erase_if(unreaped_, [](pid_t pid) {
    // A wait for all children may have reaped it: then it is no child any more.
    return waitpid(pid, nullptr, WNOHANG) != 0;
  });
}

}  // namespace mete::node
