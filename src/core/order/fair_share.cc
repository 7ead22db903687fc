// SPDX-License-Identifier: Apache-2.0
#include "core/order/fair_share.h"

#include <algorithm>
#include <limits>

namespace mete::core {

namespace {

constexpr std::int64_t kStepMs = 3'600'000;
constexpr std::uint64_t kMost = std::uint64_t{1} << 62;

// 2^(-1/n) in units of 1/2^32, by searching the n-th root: no floating point, equal on every
// machine.
std::uint64_t fade_of_step(std::uint64_t steps_to_half) {
  std::uint64_t low = 0;
  std::uint64_t high = std::uint64_t{1} << 32;
  const auto power = [steps_to_half](std::uint64_t base) {
    unsigned __int128 result = std::uint64_t{1} << 32;
    unsigned __int128 square = base;
    for (std::uint64_t n = steps_to_half; n > 0; n >>= 1) {
      if ((n & 1) != 0) result = result * square >> 32;
      square = square * square >> 32;
    }
    return static_cast<std::uint64_t>(result);
  };
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (power(middle) <= std::uint64_t{1} << 31 ? low : high) = middle;
  }
  return low;
}

}  // namespace

std::uint64_t FairShare::faded(std::uint64_t amount, std::int64_t ms) const {
  if (ms < kStepMs || amount == 0) return amount;
  const std::uint64_t steps_to_half =
      std::max<std::uint64_t>(1, half_life_s_ * 1000 / static_cast<std::uint64_t>(kStepMs));
  std::uint64_t steps = static_cast<std::uint64_t>(ms / kStepMs);
  const std::uint64_t halves = steps / steps_to_half;
  if (halves >= 64) return 0;
  amount >>= halves;
  steps %= steps_to_half;
  const std::uint64_t fade = fade_of_step(steps_to_half);
  for (; steps > 0 && amount > 0; --steps)
    amount = static_cast<std::uint64_t>(static_cast<unsigned __int128>(amount) * fade >> 32);
  return amount;
}

void FairShare::charge(const std::string& user, std::uint64_t mib_seconds, WallTime at) {
  Usage& usage = users_[user];
  if (usage.mib_seconds == 0) usage.at = at;
  // The time stamp moves in whole steps too: the rest of a step fades later instead of being lost.
  const std::int64_t passed = at.ms - usage.at.ms;
  if (passed >= kStepMs) {
    usage.mib_seconds = faded(usage.mib_seconds, passed);
    usage.at.ms += passed / kStepMs * kStepMs;
  }
  usage.mib_seconds = std::min(kMost, usage.mib_seconds + std::min(kMost, mib_seconds));
}

std::uint64_t FairShare::usage(const std::string& user, WallTime at) const {
  const auto found = users_.find(user);
  if (found == users_.end()) return 0;
  return faded(found->second.mib_seconds, at.ms - found->second.at.ms);
}

std::vector<FairShare::Entry> FairShare::entries() const {
  std::vector<Entry> list;
  for (const auto& [user, usage] : users_) list.push_back({user, usage.mib_seconds, usage.at});
  return list;
}

void FairShare::set(const std::vector<Entry>& entries) {
  users_.clear();
  for (const Entry& entry : entries)
    users_[entry.user] = {std::min(kMost, entry.mib_seconds), entry.at};
}

std::uint64_t mib_per_second(Bytes granted, unsigned cpus) {
  return granted.is_zero() ? std::uint64_t{1024} * cpus : granted.count() >> 20;
}

}  // namespace mete::core
