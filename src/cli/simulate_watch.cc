// SPDX-License-Identifier: Apache-2.0
// See simulate_watch.h.
#include "cli/simulate_watch.h"

#include <ctime>

#include "seam/clock.h"

namespace mete::cli {

namespace {

// CPU time of this process: the load of the machine does not count.
std::uint64_t cpu_ns() {
  return static_cast<std::uint64_t>(std::clock()) * (1'000'000'000 / CLOCKS_PER_SEC);
}

}  // namespace

simulate::Hooks SimulateWatch::hooks() {
  simulate::Hooks hooks;
  hooks.now_ns = [&clock = seam::system_clock()] {
    return static_cast<std::uint64_t>(clock.monotonic().count());
  };
  hooks.cpu_ns = cpu_ns;
  hooks.progress = [this](std::size_t done, std::size_t all) {
    if (signal_ == 0) signal_ = signals_.take();
    if (line_.terminal()) line_.draw(progress_bar(done, all));
    return signal_ == 0;
  };
  return hooks;
}

}  // namespace mete::cli
