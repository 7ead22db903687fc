// SPDX-License-Identifier: Apache-2.0
// What is left during a pass: cards and CPUs, less the grants so far. Asked about thousands of
// kinds of jobs, of which few fit, so refusing is fast. Internal to core/order.
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

  explicit Rest(const PassInput& input);

  // Fast. False: there is surely no room. The first form is not for users with a reservation: they
  // may see more of the cards than others.
  bool may_have(const Least& least) const { return spare_.may_have(least); }
  bool may_have(const Kind& kind) const;
  // Where this kind could go without touching reservations of others; nullopt: nowhere.
  std::optional<Placement> place(const Kind& kind);
  void give(const Holder& holder, const std::vector<GrantedCard>& cards, std::uint32_t cpus);
  // A parked job has its whole grant again.
  void give_back(const Holder& holder, const std::vector<GrantedCard>& cards, std::uint32_t cpus);
  // These bytes of each card (in pool order) are kept for another job.
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
  // The pool as seen by users to whom these reservations matter.
  std::map<std::vector<std::uint64_t>, Pool> seen_;
};

// The CPUs that a job takes. A machine with fewer CPUs than asked for still runs the job, alone.
std::uint32_t cpus_needed(const PassInput& input, const Kind& kind);

}  // namespace mete::core
