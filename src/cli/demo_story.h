// SPDX-License-Identifier: Apache-2.0
// The story of `mete demo`: which programs start, how much they take, which one waits; and what
// must then be true. Everything goes through `mete run`, as a user would type it; the checks use
// what the programs saw and what the daemon recorded.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/demo_report.h"
#include "cli/demo_stage.h"
#include "wire/cards.h"
#include "wire/job.h"

namespace mete::cli {

class DemoStory {
 public:
  DemoStory(Stage& stage, DemoReport& report, std::string program, bool simulated)
      : stage_(stage), report_(report), program_(std::move(program)), simulated_(simulated) {}

  // Failed checks are in the report and do not end it. Errors: the story could not continue.
  Result<void> tell();

  // The shared card; empty before tell().
  const wire::CardView& card() const { return card_; }

 private:
  struct Player {
    std::string name;
    Actor* actor = nullptr;
  };

  Result<void> look_at_cards();
  Result<void> share_a_card();
  Result<void> be_greedy();
  Result<void> wait_for_a_card();
  Result<void> leave();

  Result<Player> enter(const std::string& name, const std::string& share, unsigned blocks,
                       bool listens);
  Result<void> wait_for_line(const Player& player, std::string_view word, std::size_t times);
  Result<std::vector<wire::JobView>> jobs();
  void check_sizes(const std::vector<wire::JobView>& jobs);
  void check_refusal(const Player& greedy, Bytes share);
  Result<void> check_neighbours();

  Stage& stage_;
  DemoReport& report_;
  std::string program_;
  bool simulated_;
  std::vector<wire::CardView> cards_;
  wire::CardView card_;
  Player big_, anna_, bert_;
};

}  // namespace mete::cli
