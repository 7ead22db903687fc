// SPDX-License-Identifier: Apache-2.0
// What a component that waits needs from the daemon's one loop: watch this descriptor, call me
// later. Three functions, so that node and launch need nothing of net. Real: the daemon's event
// loop. Tests: tests/support/manual_loop.h.
#pragma once

#include <functional>

#include "seam/clock.h"

namespace mete::seam {

struct Loop {
  // Calls `ready` whenever the descriptor can be read or has been closed by the other side, until
  // it is unwatched; never from within watch_fd itself. One watch for each descriptor.
  std::function<void(int fd, std::function<void()> ready)> watch_fd;
  // To be called before the descriptor is closed. Also from within `ready`.
  std::function<void(int fd)> unwatch_fd;
  // Calls `then` once, later and never at once. Cannot be cancelled: a component that may be
  // destroyed by then keeps a token (see launch::ProcessWatcher).
  std::function<void(Milliseconds delay, std::function<void()> then)> after;
};

}  // namespace mete::seam
