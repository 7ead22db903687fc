// SPDX-License-Identifier: Apache-2.0
// See loop.h. Uses Boost.Asio's reactor. An operation under way holds its Timer or Watch weakly,
// and these hold the reactor: dropping the handle is enough to cancel, in whatever order objects
// are destroyed.
#include "net/loop.h"

#include <sys/stat.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

namespace mete::net {

namespace asio = boost::asio;
using boost::system::error_code;

struct Loop::Impl {
  asio::io_context context{1};  // 1: one thread will run it
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
};

struct Timer::State : std::enable_shared_from_this<Timer::State> {
  State(std::shared_ptr<Loop::Impl> loop_impl, Milliseconds repeat, Loop::Function f)
      : loop(std::move(loop_impl)), timer(loop->context), period(repeat), function(std::move(f)) {}

  void arm() {
    timer.async_wait([weak = weak_from_this()](const error_code& error) {
      const std::shared_ptr<State> self = weak.lock();  // alive until its function returns
      if (error || self == nullptr) return;
      if (self->period == Milliseconds(0)) return self->function();
      self->timer.expires_at(next(self->timer.expiry(), self->period));
      self->arm();
      self->function();
    });
  }

  // The first tick of the period that is not over yet.
  static asio::steady_timer::time_point next(asio::steady_timer::time_point last,
                                             Milliseconds period) {
    const auto late = asio::steady_timer::clock_type::now() - last;
    return last + period * (late / asio::steady_timer::duration(period) + 1);
  }

  std::shared_ptr<Loop::Impl> loop;
  asio::steady_timer timer;
  Milliseconds period;  // 0: once
  Loop::Function function;
};

struct Watch::State : std::enable_shared_from_this<Watch::State> {
  State(std::shared_ptr<Loop::Impl> loop_impl, std::function<void(Ready)> f)
      : loop(std::move(loop_impl)), descriptor(loop->context), function(std::move(f)) {}
  // The descriptor belongs to the caller: it is released, not closed. This cannot be left to the
  // destructor, which runs late if we are in a call of our function: by then the number may have
  // been reused.
  void detach() {
    wanted = 0;
    if (descriptor.is_open()) (void)descriptor.release();
  }

  void want(unsigned ready) {
    wanted = ready;
    for (const Ready one : {kReadable, kWritable, kHangup})
      if ((wanted & one) != 0 && (pending & one) == 0) arm(one);
  }

  void arm(Ready one) {
    pending |= one;
    const auto kind = one == kReadable   ? asio::posix::descriptor_base::wait_read
                      : one == kWritable ? asio::posix::descriptor_base::wait_write
                                         : asio::posix::descriptor_base::wait_error;
    descriptor.async_wait(kind, [weak = weak_from_this(), one](const error_code& error) {
      const std::shared_ptr<State> self = weak.lock();  // alive until its function returns
      if (error || self == nullptr) return;
      self->pending &= ~static_cast<unsigned>(one);
      if ((self->wanted & one) == 0) return;  // paused meanwhile
      self->function(one);
      // Waiting again polls the kernel again, so a state that persists is reported again.
      self->want(self->wanted);
    });
  }

  std::shared_ptr<Loop::Impl> loop;
  asio::posix::stream_descriptor descriptor;
  std::function<void(Ready)> function;
  unsigned wanted = 0;
  unsigned pending = 0;  // operations under way; one that is no longer wanted ends by itself
};

void Watch::want(unsigned ready) {
  if (state_ != nullptr) state_->want(ready);
}

void Watch::cancel() {
  if (const std::shared_ptr<State> state = std::exchange(state_, nullptr)) state->detach();
}

Loop::Loop() : impl_(std::make_shared<Impl>()) {}
Loop::~Loop() = default;

void Loop::run() {
  impl_->context.restart();
  impl_->context.run();
}

void Loop::stop() { impl_->context.stop(); }

void Loop::post(Function function) { asio::post(impl_->context, std::move(function)); }

Timer Loop::after(Milliseconds delay, Function function) {
  Timer timer;
  timer.state_ = std::make_shared<Timer::State>(impl_, Milliseconds(0), std::move(function));
  timer.state_->timer.expires_after(delay);
  timer.state_->arm();
  return timer;
}

Timer Loop::every(Milliseconds period, Function function) {
  METE_ASSERT(period > Milliseconds(0));
  Timer timer;
  timer.state_ = std::make_shared<Timer::State>(impl_, period, std::move(function));
  timer.state_->timer.expires_after(period);
  timer.state_->arm();
  return timer;
}

Result<Watch> Loop::watch(int descriptor, unsigned ready, std::function<void(Ready)> function) {
  // Asio accepts plain files, and would then never report anything.
  struct stat info {};
  if (fstat(descriptor, &info) == 0 && (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)))
    return Error::invalid("a file is always ready: it cannot be watched");
  Watch watch;
  watch.state_ = std::make_shared<Watch::State>(impl_, std::move(function));
  error_code error;
  watch.state_->descriptor.assign(descriptor, error);
  if (error)
    return Error::io("watch descriptor " + std::to_string(descriptor) + ": " + error.message());
  watch.state_->want(ready);
  return watch;
}

}  // namespace mete::net
