// SPDX-License-Identifier: Apache-2.0
// The cards of the simulated machine as they really are, which the engine learns only by looking:
// which memory is held outside of it, which cards are lost. Other daemons follow the protocol (a
// claim is made only on unreserved bytes), foreign processes do not.
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

  // The result of a look: our own grants are not in it.
  const core::Pool& now() const { return pool_; }

  // Something changes: foreign memory, another daemon's claim, a card lost or back, or stale.
  void change(const Reserved& ours);
  // All others have left, and all cards work.
  void become_quiet();
  // The other daemons' answer to a reservation.
  bool others_agree(const Reserved& ours, const std::vector<core::GrantedCard>& wanted) const;

  // Any request a user might make, some of them impossible on these cards.
  core::Request request();
  // Some card, as users name them; now and then one that does not exist.
  std::string name();

 private:
  core::GpuRequest gpu_of_size();
  core::GpuRequest gpu_that_grows();

  Dice& dice_;
  core::Pool pool_;
  std::vector<core::Size> usual_;  // sizes that many jobs ask for
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
