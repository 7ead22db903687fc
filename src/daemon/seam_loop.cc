// SPDX-License-Identifier: Apache-2.0
// See seam_loop.h.
#include "daemon/seam_loop.h"

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

namespace mete::daemon {

seam::Loop seam_loop(net::Loop& loop, std::function<void(const std::string&)> log) {
  auto watches = std::make_shared<std::map<int, net::Watch>>();
  auto timers = std::make_shared<std::map<std::uint64_t, net::Timer>>();
  auto last = std::make_shared<std::uint64_t>(0);
  seam::Loop seam;
  seam.watch_fd = [&loop, watches, log = std::move(log)](int fd, std::function<void()> ready) {
    Result<net::Watch> watch = loop.watch(fd, net::kReadable | net::kHangup,
                                          [ready = std::move(ready)](net::Ready) { ready(); });
    if (watch)
      (*watches)[fd] = *std::move(watch);
    else
      log("cannot watch a descriptor: " + watch.error().message);
  };
  seam.unwatch_fd = [watches](int fd) { watches->erase(fd); };
  seam.after = [&loop, timers, last](seam::Milliseconds delay, std::function<void()> then) {
    const std::uint64_t number = ++*last;
    (*timers)[number] = loop.after(delay, [timers, number, then = std::move(then)] {
      const net::Timer keep = std::move(timers->at(number));
      timers->erase(number);
      then();
    });
  };
  return seam;
}

}  // namespace mete::daemon
