// SPDX-License-Identifier: Apache-2.0
// Our promises in the claims directory: publishes them before the engine acts on them, and decides,
// over a few turns of the loop, which daemon goes first when two want the same bytes.
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

  // Until then reserve() only remembers: promises from before a restart stay, whatever other
  // daemons did meanwhile.
  void begin();

  // True: the bytes are ours; every other daemon respects that.
  bool reserve(core::JobId job, const std::vector<core::GrantedCard>& cards,
               std::optional<core::ProcessRef> runner);
  // Ties the promise to the life of this process, a keeper, should the daemon die.
  void runs(core::JobId job, core::ProcessRef runner);
  void release(core::JobId job);
  // Releases all jobs but these.
  void keep_only(const std::function<bool(core::JobId)>& wanted);

  // Sets the room that all daemons together may fill, as of the last reading.
  void see(const core::Pool& machine);
  // Current claims of other daemons. Also restores our own file if it was removed.
  std::vector<node::OtherClaim> others();
  // Why nothing can be claimed at the moment; "": all is well.
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

  std::optional<node::ClaimBook> book_;  // absent: no folder is usable, this daemon is alone
  seam::Loop loop_;
  std::function<void()> settled_;
  std::map<core::JobId, Promise> promised_;
  std::vector<node::ClaimRoom> room_;
  // The attempt under way.
  std::optional<std::pair<core::JobId, Promise>> trying_;
  int asks_ = 0;
  bool begun_ = false;
  std::vector<node::OtherClaim> last_others_;
  std::string trouble_;
};

}  // namespace mete::daemon
