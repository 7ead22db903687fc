// SPDX-License-Identifier: Apache-2.0
// The cards of one machine, as the daemon has them: State decides everything, placement too.
#pragma once

#include <map>
#include <vector>

#include "simulate/timed.h"

namespace mete::simulate {

class MachineSite : public Site {
 public:
  // `jobs` are for the measure of fragmentation: what a random one of them could use.
  MachineSite(core::Pool machine, core::Policy policy, const std::vector<TimedJob>& jobs);

  Result<std::vector<core::Happened>> submit(const core::State& state, const core::Submit& submit,
                                             std::size_t index, WallTime now) override;
  std::vector<core::JobGranted> grants(const core::State& state, WallTime now) override;
  void ended(core::JobId) override {}
  void locate(const core::JobGranted& granted, Life& life) const override;
  Use use(const core::State& state) override;

 private:
  // A request of the list: what it needs of each card that could serve it.
  struct Typical {
    double frequency = 0;
    std::size_t wanted = 0;
    std::vector<std::optional<Bytes>> needs;  // by position in the pool; absent: not this card
    bool whole = false;
  };

  core::Moment moment(WallTime now) const { return {machine_, policy_, now}; }
  double lost(const core::Pool& pool, const std::vector<Bytes>& free, const Typical& typical) const;

  core::Pool machine_;
  core::Policy policy_;
  Bytes capacity_;
  std::vector<Typical> typical_;
};

}  // namespace mete::simulate
