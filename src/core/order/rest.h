// SPDX-License-Identifier: Apache-2.0
// What is left in the middle of a walk: cards and CPUs, less what was given so far. Asked about
// thousands of kinds of jobs, of which few fit, so it says no quickly. Inside of core/order.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "core/order/pass.h"
#include "core/place/spare.h"

namespace mete::core {

class Rest {
 public:
  static constexpr std::uint32_t kNoLimit = std::numeric_limits<std::uint32_t>::max();

  // All that is free now.
  explicit Rest(const PassInput& input);

  // Quick. False: there is surely no room. The first is not for users who have a reservation: they
  // may see more of the cards than others.
  bool may_have(const Least& least) const { return spare_.may_have(least); }
  bool may_have(const Kind& kind) const;
  // Where this kind could go, with what is reserved for others left alone; nullopt: nowhere.
  std::optional<Placement> place(const Kind& kind);
  void give(const Holder& holder, const std::vector<GrantedCard>& cards, std::uint32_t cpus);
  // A parked job has all of its grant again.
  void give_back(const Holder& holder, const std::vector<GrantedCard>& cards, std::uint32_t cpus);
  // So much of each card (in the order of the pool) is for somebody else.
  void keep(const std::vector<Bytes>& bytes, std::uint32_t cpus);

  const Pool& pool() const { return pool_; }
  std::uint32_t cpus() const { return cpus_; }
  Pool take_pool() && { return std::move(pool_); }

 private:
  void changed();
  const Pool& seen(const Kind& kind);

  const PassInput& input_;
  Pool pool_;
  std::uint32_t cpus_ = kNoLimit;
  Spare spare_;
  // The pool as those see it to whom the same reservations matter.
  std::map<std::vector<std::uint64_t>, Pool> seen_;
};

// The CPUs that a job takes. A machine with fewer than it asks for still runs it, alone.
std::uint32_t cpus_needed(const PassInput& input, const Kind& kind);

}  // namespace mete::core
