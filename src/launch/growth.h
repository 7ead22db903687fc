// SPDX-License-Identifier: Apache-2.0
// A job that may grow (`--gpu 8G..20G`), as its runner sees it: what its processes ask for, and how
// much of each card they may hold now. The words are in the grant file (abi/grant.h);
// docs/formats/grant.md describes how they change. Never waits. A process that asks waits for an
// answer, two seconds at most, and not at all once the runner is gone.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "abi/grant.h"
#include "base/bytes.h"

namespace mete::launch {

class Growth {
 public:
  struct Ask {
    std::uint32_t card = 0;  // position in the grant
    Bytes wanted;            // the total that the job would then hold; below the ceiling
    bool operator==(const Ask&) const = default;
  };

  // For a grant that was made to grow (GrantName::growing); before the job's first process is
  // started, so that there is a slot for this object. The grant stays mapped. Processes ask from
  // here on until the end of this object: afterwards no process waits for an answer.
  explicit Growth(abi::Grant& grant);
  ~Growth();
  Growth(const Growth&) = delete;
  Growth& operator=(const Growth&) = delete;

  // The next ask. Each is returned once, and none for a card whose last ask is not answered yet.
  std::optional<Ask> asked();

  // Sets what the job may hold on a card, between its guarantee and its ceiling; a higher limit
  // answers the open ask. Exact, even while the job allocates: returns the most that it holds from
  // now on until the next call, which is more than `limit` while the job uses more.
  Bytes allow(std::uint32_t card, Bytes limit);
  // Refuses the open ask. The limit stays unchanged.
  void answer(std::uint32_t card);

  // What the job holds on a card: its charges, and what NVML has seen beyond them.
  Bytes used(std::uint32_t card) const;
  // The most that the job can currently hold.
  Bytes allowed(std::uint32_t card) const;

 private:
  struct Open {
    std::uint64_t number = 0;  // the last ask that was looked at
    std::uint64_t wanted = 0;  // 0: no open ask
  };

  abi::Grant& grant_;
  std::uint64_t owner_;
  int slot_;
  std::array<Open, abi::kMaxCards> open_{};
};

}  // namespace mete::launch
