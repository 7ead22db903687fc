// SPDX-License-Identifier: Apache-2.0
// How much of the cards each user had lately: MiB of GPU memory times seconds, halved after each
// half-life. Integers only, so that replaying the log gives equal figures: recorded usage fades in
// whole steps of an hour.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"

namespace mete::core {

class FairShare {
 public:
  explicit FairShare(std::uint64_t half_life_s = 7 * 86'400) : half_life_s_(half_life_s) {}

  // Amounts that faded before keep what they are.
  void set_half_life(std::uint64_t seconds) { half_life_s_ = seconds; }
  void charge(const std::string& user, std::uint64_t mib_seconds, WallTime at);
  // Faded to `at`; a clock that was set back fades nothing.
  std::uint64_t usage(const std::string& user, WallTime at) const;

  struct Entry {
    std::string user;
    std::uint64_t mib_seconds = 0;
    WallTime at;
    bool operator==(const Entry&) const = default;
  };
  std::vector<Entry> entries() const;
  void set(const std::vector<Entry>& entries);
  bool operator==(const FairShare& other) const { return users_ == other.users_; }

 private:
  struct Usage {
    std::uint64_t mib_seconds = 0;
    WallTime at;
    bool operator==(const Usage&) const = default;
  };
  std::uint64_t faded(std::uint64_t amount, std::int64_t ms) const;

  std::uint64_t half_life_s_;
  std::map<std::string, Usage> users_;
};

// The cost of a job per second: its GPU memory in MiB, or 1 GiB per CPU for a job without a GPU.
std::uint64_t mib_per_second(Bytes granted, unsigned cpus);

}  // namespace mete::core
