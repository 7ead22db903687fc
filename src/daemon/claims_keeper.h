// SPDX-License-Identifier: Apache-2.0
// Our promises in the claims directory: publishes them before the engine acts on them, and sorts
// out, over a few turns of the loop, who goes first when two daemons want the same bytes.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/job/job.h"
#include "core/place/place.h"
#include "node/claims.h"
#include "seam/loop.h"

namespace mete::daemon {

class ClaimsKeeper {
 public:
  // `settled` is called from the loop when reserve() should be asked again.
  ClaimsKeeper(std::optional<node::ClaimBook> book, seam::Loop loop, std::function<void()> settled)
      : book_(std::move(book)), loop_(std::move(loop)), settled_(std::move(settled)) {}

  // Until then reserve() only remembers: what was promised before a restart stays promised,
  // whatever others did meanwhile.
  void begin();

  // True: the bytes are ours, as far as every other daemon is concerned.
  bool reserve(core::JobId job, const std::vector<core::GrantedCard>& cards,
               std::optional<core::ProcessRef> runner);
  // Whose life our promise hangs on from now on, should we die: a keeper's.
  void runs(core::JobId job, core::ProcessRef runner);
  void release(core::JobId job);
  // Releases all but these.
  void keep_only(const std::function<bool(core::JobId)>& wanted);

  // The room that all daemons together may fill: what the last look showed.
  void see(const core::Pool& machine);
  // What others claim now. Also mends our own file if it was removed.
  std::vector<node::OtherClaim> others();
  // Why nothing can be claimed at the moment; "": nothing is wrong.
  const std::string& trouble() const { return trouble_; }

 private:
  struct Promise {
    std::vector<core::GrantedCard> cards;
    std::optional<core::ProcessRef> runner;
  };
  std::vector<node::Claim> claims_of(core::JobId job, const Promise& promise) const;
  void hold_all();
  bool conclude(const Result<node::Verdict>& verdict);
  void ask_later(int delay_ms, bool ask_again);

  std::optional<node::ClaimBook> book_;  // absent: no folder to be had, this daemon is alone
  seam::Loop loop_;
  std::function<void()> settled_;
  std::map<core::JobId, Promise> promised_;
  std::vector<node::ClaimRoom> room_;
  // The one that is being tried for.
  std::optional<std::pair<core::JobId, Promise>> trying_;
  int asks_ = 0;
  bool begun_ = false;
  std::vector<node::OtherClaim> last_others_;
  std::string trouble_;
};

}  // namespace mete::daemon
