// SPDX-License-Identifier: Apache-2.0
// When to sample: about four times a second for as long as the launcher lives. The caller defines
// what a sample is.
#pragma once

#include <functional>

namespace mete::launch {

inline constexpr int kSamplePeriodMs = 250;

// Calls `sample_once` at once and then every period, until the other end of `alive_fd` (the reading
// end of a pipe whose writing end only the launcher holds) is closed. The pause follows the sample,
// so a slow driver is not called faster than it answers. Blocks; uses no clock.
void run_sampler_loop(int alive_fd, const std::function<void()>& sample_once,
                      int period_ms = kSamplePeriodMs);

}  // namespace mete::launch
