// SPDX-License-Identifier: Apache-2.0
// What one user may have at a time, and whether a little more would be too much. Values and sums; a
// limit that is not set does not limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace mete::core {

struct Quota {
  std::optional<std::uint32_t> cards;  // on so many cards, whole or shared (a card counts per job)
  std::optional<Bytes> bytes;          // of GPU memory, granted
  std::optional<std::uint32_t> running;  // jobs that hold a grant
  std::optional<std::uint32_t> jobs;     // unfinished jobs; more are refused at submit
  std::optional<Bytes> disk;             // of logs that mete keeps for ended and running jobs
  bool operator==(const Quota&) const = default;
};

// The quota of a user where each limit that is not set is the default's.
Quota with_defaults(Quota own, const Quota& everybody);

// What a user has, or would have besides.
struct Held {
  std::uint32_t cards = 0;
  Bytes bytes;
  std::uint32_t running = 0;
  bool operator==(const Held&) const = default;
};

// The limit that `more` on top of `now` would be over.
struct OverQuota {
  enum class Limit { kRunning, kCards, kBytes };
  Limit limit = Limit::kRunning;
  std::uint64_t now = 0;
  std::uint64_t most = 0;
  std::uint64_t more = 0;
  bool operator==(const OverQuota&) const = default;
};
std::string_view to_string(OverQuota::Limit limit);  // "running", "cards", "bytes"
std::optional<OverQuota::Limit> parse_quota_limit(std::string_view text);
// "3 of 4 cards, and this takes 2"
std::string to_string(const OverQuota& over);

// nullopt: it is within the quota.
std::optional<OverQuota> over(const Quota& quota, const Held& now, const Held& more);
// It can never start, however little else the user has.
std::optional<std::string> never_within(const Quota& quota, const Held& more);

}  // namespace mete::core
