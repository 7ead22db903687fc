// SPDX-License-Identifier: Apache-2.0
// Checks the proposals of `mete explain`: the change is made in a copy of the daemon's state, and
// the job has to start there; and the next smaller change of the same kind must not have been
// enough.
#pragma once

#include "core/explain/change.h"
#include "core/job/state.h"
#include "tests/sim/books.h"
#include "tests/sim/dice.h"

namespace mete::sim {

class Advice {
 public:
  Advice(Judge& judge, Dice& dice, const Books& books)
      : judge_(judge), dice_(dice), books_(books) {}

  // Checks the advice for one waiting job.
  void check(const core::State& state, const core::Moment& moment);

 private:
  bool starts_with(const core::State& state, const core::Moment& moment, const core::Job& job,
                   const core::Change& change) const;
  bool frees_others(const core::Change& change) const;

  Judge& judge_;
  Dice& dice_;
  const Books& books_;
};

}  // namespace mete::sim
