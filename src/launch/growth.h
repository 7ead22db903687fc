// SPDX-License-Identifier: Apache-2.0
// A job that may grow (`--gpu 8G..20G`), as its runner sees it: what its processes ask for, and how
// much of each card they may hold now. The words are in the grant file (abi/grant.h), the way they
// change in docs/formats/grant.md. Never waits. A process that asks waits for an answer, two
// seconds at most, and not at all once the runner is gone.
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
    std::uint32_t card = 0;  // by position in the grant
    Bytes wanted;            // the total that the job would hold then; under the ceiling
    bool operator==(const Ask&) const = default;
  };

  // Of a grant that was made to grow (GrantName::growing); before the job's first process is
  // started, so that there is a slot for this one. The grant stays mapped. Asks are made from here
  // on until the end of this object: afterwards nobody waits for an answer.
  explicit Growth(abi::Grant& grant);
  ~Growth();
  Growth(const Growth&) = delete;
  Growth& operator=(const Growth&) = delete;

  // The next ask. Each once, and none of a card whose last one is not answered yet.
  std::optional<Ask> asked();

  // Sets what the job may hold on a card, between its guarantee and its ceiling; more than before
  // is an answer to its open ask. Exact, also while it allocates: returns the most that it holds
  // from now on until the next call, which is more than `limit` while it uses more.
  Bytes allow(std::uint32_t card, Bytes limit);
  // The open ask is refused. What was allowed stays so.
  void answer(std::uint32_t card);

  // What the job holds on a card: what it was given, and what NVML has seen beyond that.
  Bytes used(std::uint32_t card) const;
  // The most that it can hold as things are.
  Bytes allowed(std::uint32_t card) const;

 private:
  struct Open {
    std::uint64_t number = 0;  // up to which asks were looked at
    std::uint64_t wanted = 0;  // 0: nothing is open
  };

  abi::Grant& grant_;
  std::uint64_t owner_;
  int slot_;
  std::array<Open, abi::kMaxCards> open_{};
};

}  // namespace mete::launch
