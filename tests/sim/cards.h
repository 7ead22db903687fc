// SPDX-License-Identifier: Apache-2.0
// The cards of the simulated machine as they really are, which the engine learns only when it
// looks: who holds what outside of it, which cards are lost. Other daemons take part in the
// protocol (a claim is made only on bytes that nobody has reserved), foreign processes do not.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/place/place.h"
#include "tests/sim/dice.h"

namespace mete::sim {

using Reserved = std::map<core::JobId, std::vector<core::GrantedCard>>;

class Cards {
 public:
  explicit Cards(Dice& dice);

  // What a look shows: our own grants are not in it.
  const core::Pool& now() const { return pool_; }

  // Something changes: foreign memory, another daemon's claim, a card lost or back, or stale.
  void change(const Reserved& ours);
  // Nobody else is here any more, and all cards are well.
  void become_quiet();
  // The other daemons' answer to a reservation.
  bool others_agree(const Reserved& ours, const std::vector<core::GrantedCard>& wanted) const;

  // Any words a user might say, some of them impossible on these cards.
  core::Request request();
  // Some card, as people name them; now and then one that is not there.
  std::string name();

 private:
  core::GpuRequest gpu_of_size();
  core::GpuRequest gpu_that_grows();

  Dice& dice_;
  core::Pool pool_;
  std::vector<core::Size> usual_;  // sizes that many ask for
};

// The sum of what is held on a card, and by how many.
struct OnCard {
  Bytes bytes;
  int holders = 0;
  int whole = 0;
};
OnCard on_card(const Reserved& held, const std::string& uuid);
Bytes sum(const std::vector<core::Outside>& list);

}  // namespace mete::sim
