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

// Groups, group and user, in this order, each checked, and that there is no way back. An error: do
// not go on; some of it may hold already. For a process with one thread.
Result<void> become(const Identity& identity);

// Hard limits above ours, which only root can give: raised here, so that what is left to do for a
// program is to lower them. Those that cannot be raised stay.
void raise_hard_limits(const std::vector<core::ResourceLimit>& limits);

}  // namespace mete::launch
