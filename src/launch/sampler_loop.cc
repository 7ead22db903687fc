// SPDX-License-Identifier: Apache-2.0
// See sampler_loop.h.
#include "launch/sampler_loop.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace mete::launch {

void run_sampler_loop(int alive_fd, const std::function<void()>& sample_once, int period_ms) {
  for (;;) {
    sample_once();
    pollfd alive{alive_fd, POLLIN, 0};
    const int ready = poll(&alive, 1, period_ms);
    if (ready > 0) return;  // nothing is ever written: readable means closed
    if (ready < 0 && errno != EINTR) return;
  }
}

}  // namespace mete::launch
