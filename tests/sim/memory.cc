// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/memory.h"

#include <algorithm>
#include <utility>

#include "tests/sim/planted.h"

namespace mete::sim {

using std::chrono::milliseconds;

namespace {

Bytes granules(std::uint64_t bytes) { return Bytes::from_bytes(bytes).round_down(core::kGranule); }

}  // namespace

void Memory::begin(AttemptKey key, const std::vector<core::GrantedCard>& cards, Dice& dice) {
  key_ = key;
  cards_ = cards;
  token_ = dice.below(1'000'000);
  for (const core::GrantedCard& card : cards) {
    allowed_.push_back(card.bytes);
    held_.push_back(granules(dice.below(card.bytes.count() + 1)));
    kept_.emplace_back();
  }
}

void Memory::end() {
  stage_ = Stage::kHere;
  for (Bytes& bytes : held_) bytes = Bytes();
}

bool Memory::grows() const {
  return std::any_of(cards_.begin(), cards_.end(),
                     [](const core::GrantedCard& card) { return !card.least.is_zero(); });
}

Bytes Memory::moved() const {
  Bytes sum;
  for (const Bytes bytes : kept_) sum += bytes;
  return sum;
}

// ---- going, and coming back --------------------------------------------------------------------

void Memory::leave(seam::Nanoseconds now, bool deep, Dice& dice) {
  stage_ = Stage::kLeaving;
  deep_ = deep;
  done_at_ = now + milliseconds(dice.percent(90) ? dice.below(1'500) : dice.below(15'000));
}

void Memory::come_back(seam::Nanoseconds now, Dice& dice) {
  stage_ = Stage::kReturning;
  done_at_ = now + milliseconds(dice.percent(90) ? dice.below(1'500) : dice.below(15'000));
}

void Memory::finish_leaving(bool quiet, Dice& dice, Arena& arena) {
  end_.emplace();
  const std::uint64_t roll = quiet ? 99 : dice.below(100);
  if (!obstacle_.empty() && !deep_) {
    end_ = {obstacle_, true};
  } else if (roll < 10) {
    end_->why = "a call into the driver did not come back in time";
  } else if (roll < 16) {
    end_->why = "there is no room in the arena";
  }
  if (!end_->why.empty()) {
    stage_ = Stage::kHere;
    return;
  }
  // Contexts and code stay, and sometimes much else.
  for (std::size_t i = 0; i < held_.size(); ++i) {
    const std::uint64_t most = dice.percent(70)
                                   ? std::min<std::uint64_t>(held_[i].count(), 600ull << 20)
                                   : held_[i].count();
    const Bytes stays = deep_ ? Bytes() : granules(dice.below(most + 1));
    kept_[i] = held_[i] - stays;
    held_[i] = stays;
  }
  arena[key_] = left_ = token_;
  token_ = 0;
  stage_ = Stage::kAway;
}

void Memory::finish_returning(bool quiet, Dice& dice, Arena& arena, Judge& judge) {
  end_.emplace();
  if (!quiet && dice.percent(20)) {
    stage_ = Stage::kAway;
    end_->why = "there is no room for it on its card";
    return;
  }
  for (std::size_t i = 0; i < held_.size(); ++i) held_[i] += std::exchange(kept_[i], Bytes());
  const auto kept = planted("bytes-mixed-up") ? arena.begin() : arena.find(key_);
  if (kept == arena.end() || kept->second != left_)
    judge.fail("job " + to_string(key_.first) + " came back, and its bytes are not what they were");
  token_ = kept->second;
  arena.erase(kept);
  stage_ = Stage::kHere;
}

std::optional<seam::Nanoseconds> Memory::time_passes(seam::Nanoseconds now, bool quiet, Dice& dice,
                                                     Arena& arena, Judge& judge) {
  if (at_rest() || now < done_at_) return std::nullopt;
  if (stage_ == Stage::kLeaving) {
    finish_leaving(quiet, dice, arena);
    if (stage_ == Stage::kAway) away_since_ = now;
    return std::nullopt;
  }
  finish_returning(quiet, dice, arena, judge);
  if (stage_ == Stage::kAway) return std::nullopt;
  return now - away_since_;
}

std::optional<Memory::End> Memory::take_end() {
  if (!at_rest()) return std::nullopt;
  return std::exchange(end_, std::nullopt);
}

// ---- while it runs -----------------------------------------------------------------------------

void Memory::use(Dice& dice, Judge& judge) {
  if (stage_ != Stage::kHere) return;
  for (std::size_t i = 0; i < held_.size(); ++i) {
    const bool all = dice.percent(30);
    held_[i] = all ? allowed_[i] : granules(dice.below(allowed_[i].count() + 1));
  }
  token_ += dice.below(1'000);
  if (dice.percent(3)) obstacle_ = obstacle_.empty() ? "it has managed memory" : "";
  judge.saw("a program uses its memory");
}

void Memory::allow(std::size_t card, Bytes bytes) {
  if (bytes > allowed_[card]) allowed_[card] = bytes;
}

Bytes Memory::take_back(std::size_t card, Bytes bytes) {
  allowed_[card] = std::min(allowed_[card], std::max(bytes, held_[card]));
  return allowed_[card];
}

}  // namespace mete::sim
