// SPDX-License-Identifier: Apache-2.0
// What a user may have at a time, and whether a request would exceed it. Values and sums; an absent
// limit does not limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace mete::core {

struct Quota {
  std::optional<std::uint32_t> cards;    // whole or shared (a card counts once per job)
  std::optional<Bytes> bytes;            // of GPU memory, granted
  std::optional<std::uint32_t> running;  // jobs that hold a grant
  std::optional<std::uint32_t> jobs;     // unfinished jobs; more are refused at submit
  std::optional<Bytes> disk;             // logs of ended and running jobs
  bool operator==(const Quota&) const = default;
};

// The user's quota, with absent limits taken from the default.
Quota with_defaults(Quota own, const Quota& everybody);

// What a user has, or would have in addition.
struct Held {
  std::uint32_t cards = 0;
  Bytes bytes;
  std::uint32_t running = 0;
  bool operator==(const Held&) const = default;
};

// The limit that `more` on top of `now` would exceed.
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

// nullopt: within the quota.
std::optional<OverQuota> over(const Quota& quota, const Held& now, const Held& more);
// Why a job can never start, even if the user had nothing else.
std::optional<std::string> never_within(const Quota& quota, const Held& more);

}  // namespace mete::core
