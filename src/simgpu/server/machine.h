// SPDX-License-Identifier: Apache-2.0
// The simulated machine: which cards it has and what they report. Built from METE_SIM's text
// ("4xH200") or from a small file; an invalid text gives a message, never a guess.
#pragma once

#include <string>
#include <vector>

#include "simgpu/protocol.h"

namespace simgpu {

// The utilisation of a card or process, by the second. Work that takes time is reported when it
// begins and may last into later seconds.
class Load {
 public:
  void add(uint64_t now_ms, uint64_t us) {
    roll(now_ms);
    us_ += us;
  }
  // Work that is over: an excess over the elapsed time is dropped.
  void add_done(uint64_t now_ms, uint64_t us) {
    add(now_ms, us);
    const uint64_t most = (now_ms - window_ms_ + 1) * 1000;
    us_ = us_ < most ? us_ : most;
  }
  // The fuller one of this second and the one before.
  uint32_t percent(uint64_t now_ms) {
    roll(now_ms);
    const uint64_t us = us_ > before_us_ ? us_ : before_us_;
    return static_cast<uint32_t>(us < 1000000 ? us / 10000 : 100);
  }
  // percent(), where any work at all counts as at least 1.
  uint8_t percent_or_one(uint64_t now_ms) {
    const auto rounded = static_cast<uint8_t>(percent(now_ms));
    return rounded == 0 && us_ + before_us_ > 0 ? 1 : rounded;
  }

 private:
  void roll(uint64_t now_ms) {
    const uint64_t elapsed_ms = now_ms - window_ms_;
    if (elapsed_ms < 1000) return;
    const uint64_t done_us = us_ < elapsed_ms * 1000 ? us_ : elapsed_ms * 1000;
    // Work that ended more than a second ago does not belong to the second before.
    before_us_ = elapsed_ms < 2000 || done_us < us_ ? done_us : 0;
    us_ -= done_us;
    window_ms_ = now_ms;
  }

  uint64_t window_ms_ = 0;
  uint64_t us_ = 0;  // since the window began, and still to be done
  uint64_t before_us_ = 0;
};

struct Card {
  CardInfo info{};
  uint64_t used = 0;
  uint32_t idle_mw = 0;
  // Set by `--ctl set-card`; below zero: computed from the load.
  int temperature_set = -1;
  int utilisation_set = -1;

  uint64_t capacity() const { return info.total - info.reserved; }
};

struct Machine {
  std::string text;  // what it was built from
  std::vector<Card> cards;
};

// Builds the machine that `text` names; on failure returns false and a one-line `why`.
bool build_machine(const std::string& text, Machine* machine, std::string* why);

// Sizes as "80G", "143771M", "512MiB", "8GB", "1024": bytes. False when it is not a size.
bool parse_size(const std::string& text, uint64_t* bytes);

}  // namespace simgpu
