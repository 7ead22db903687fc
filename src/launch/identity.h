// SPDX-License-Identifier: Apache-2.0
// Becoming the owner of a job, for good, when root's daemon starts one: from then on everything is
// done with that user's rights only.
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

// With the groups that the user database lists now. A user that is not in the database (in a
// container, or if the database does not answer) has only the group nogroup.
Identity identity_of(std::uint32_t uid);

// As long as it lives, root opens files with this user's rights only; other processes, and root's
// own files, are not affected. Real and saved ids stay root's: the user cannot signal us meanwhile.
// For a process with one thread.
class RightsOf {
 public:
  // io: the rights could not be taken on; everything is as before.
  static Result<RightsOf> take(const Identity& identity);
  RightsOf(RightsOf&& other) noexcept;
  RightsOf& operator=(RightsOf&&) = delete;
  ~RightsOf();

 private:
  RightsOf() = default;
  bool taken_ = false;
  std::vector<std::uint32_t> groups_;  // our own groups
  std::uint32_t gid_ = 0;
};

// Sets groups, group and user, in this order, each checked, and checks that there is no way back.
// An error: do not go on; a part of it may be in effect. For a process with one thread.
Result<void> become(const Identity& identity);

// Hard limits above ours, which only root can set: raised here, so that a program only needs to
// lower them. Limits that cannot be raised stay.
void raise_hard_limits(const std::vector<core::ResourceLimit>& limits);

}  // namespace mete::launch
