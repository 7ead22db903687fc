// SPDX-License-Identifier: Apache-2.0
// What a program really has on its cards: how much its runner allows, how much it holds, and what
// is stored elsewhere while it is parked. Leaving and returning take time and may fail; once begun
// they end by themselves, whichever process dies meanwhile. A token stands for the content of the
// memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/job/job.h"
#include "seam/clock.h"
#include "tests/sim/dice.h"
#include "tests/sim/judge.h"

namespace mete::sim {

// An attempt of a job.
using AttemptKey = std::pair<core::JobId, std::uint32_t>;
// What movers store for each attempt.
using Arena = std::map<AttemptKey, std::uint64_t>;

class Memory {
 public:
  enum class Stage { kHere, kLeaving, kAway, kReturning };
  // How the last order ended, until it is read.
  struct End {
    std::string why;  // it was not done
    bool standing = false;
  };

  // At the start of a program.
  void begin(AttemptKey key, const std::vector<core::GrantedCard>& cards, Dice& dice);
  // The program is gone.
  void end();

  Stage stage() const { return stage_; }
  bool at_rest() const { return stage_ == Stage::kHere || stage_ == Stage::kAway; }
  // It computes, and its time passes.
  bool runs() const { return stage_ == Stage::kHere || stage_ == Stage::kLeaving; }
  bool grows() const;
  const std::vector<core::GrantedCard>& cards() const { return cards_; }
  const std::vector<Bytes>& held() const { return held_; }
  const std::vector<Bytes>& allowed() const { return allowed_; }
  Bytes moved() const;
  const std::string& obstacle() const { return obstacle_; }

  void leave(seam::Nanoseconds now, bool deep, Dice& dice);
  void come_back(seam::Nanoseconds now, Dice& dice);
  // Advances an order that was begun. `quiet`: nothing goes wrong by chance. Returns for how long
  // the program stood still, once it goes on.
  std::optional<seam::Nanoseconds> time_passes(seam::Nanoseconds now, bool quiet, Dice& dice,
                                               Arena& arena, Judge& judge);
  std::optional<End> take_end();

  // The program allocates, frees and computes, as far as it may.
  void use(Dice& dice, Judge& judge);
  // It may have more; less only as far as it is unused: what is left is returned.
  void allow(std::size_t card, Bytes bytes);
  Bytes take_back(std::size_t card, Bytes bytes);

 private:
  void finish_leaving(bool quiet, Dice& dice, Arena& arena);
  void finish_returning(bool quiet, Dice& dice, Arena& arena, Judge& judge);

  AttemptKey key_;
  std::vector<core::GrantedCard> cards_;
  std::vector<Bytes> allowed_;
  std::vector<Bytes> held_;
  std::vector<Bytes> kept_;  // elsewhere
  Stage stage_ = Stage::kHere;
  bool deep_ = false;
  seam::Nanoseconds done_at_{};
  seam::Nanoseconds away_since_{};
  std::optional<End> end_;
  std::string obstacle_;     // to parking, known beforehand
  std::uint64_t token_ = 0;  // on its cards
  std::uint64_t left_ = 0;   // what it was when it left
};

}  // namespace mete::sim
