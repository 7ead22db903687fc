// SPDX-License-Identifier: Apache-2.0
// Becoming the owner of a job, for good, when root's daemon starts one: from then on everything is
// tried with that user's rights alone.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "seam/launcher.h"

namespace mete::launch {

struct Identity {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups;
};

// With the groups that the system's directory gives the user now. One that nobody has named (in a
// container, or whose directory does not answer) has no group but that of nobody.
Identity identity_of(std::uint32_t uid);

// As long as it lives, root opens files with this user's rights alone; nothing changes for others,
// and for root's own files. Real and saved ids stay root's: the user cannot touch us meanwhile.
// For a process with one thread.
class RightsOf {
 public:
  // io: they could not be taken on; all is as before.
  static Result<RightsOf> take(const Identity& identity);
  RightsOf(RightsOf&& other) noexcept;
  RightsOf& operator=(RightsOf&&) = delete;
  ~RightsOf();

 private:
  RightsOf() = default;
  bool taken_ = false;
  std::vector<std::uint32_t> groups_;  // ours
  std::uint32_t gid_ = 0;
};

// Groups, group and user, in this order, each checked, and that there is no way back. An error: do
// not go on; some of it may hold already. For a process with one thread.
Result<void> become(const Identity& identity);

// Hard limits above ours, which only root can give: raised here, so that what is left to do for a
// program is to lower them. Those that cannot be raised stay.
void raise_hard_limits(const std::vector<core::ResourceLimit>& limits);

}  // namespace mete::launch
