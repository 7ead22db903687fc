// SPDX-License-Identifier: Apache-2.0
// How a daemon divides its file descriptors: between clients, handles on processes that it waits
// for, and its own files. Values only.
#pragma once

#include <algorithm>
#include <cstddef>

namespace mete::base {

struct DescriptorShares {
  std::size_t connections = 0;  // clients
  std::size_t handles = 0;      // on keepers, and as many on runners; others are polled
  std::size_t starting = 0;     // keepers that are started at the same time
};

// Reserved for what cannot wait: the database, the helper that reads the cards, movers, claims, a
// notification, and files that are open briefly (a record, a plan, a file below /proc).
inline constexpr std::size_t kOwnDescriptors = 34;
// With fewer the daemon is useless: a client, a keeper and a handle of each must fit.
inline constexpr std::size_t kLeastDescriptors = 48;

// 64 give 10 clients, 5 handles on keepers and 5 on runners, 5 starts; 1,024 give 330, 165, 165 and
// 165. More than some thousands are not used.
inline DescriptorShares share_descriptors(std::size_t limit) {
  const std::size_t spare = limit > kOwnDescriptors ? limit - kOwnDescriptors : 0;
  return {std::clamp<std::size_t>(spare / 3, 4, 4096), std::clamp<std::size_t>(spare / 6, 2, 32768),
          std::clamp<std::size_t>(spare / 6, 2, 256)};
}

}  // namespace mete::base
