// SPDX-License-Identifier: Apache-2.0
// The snapshot of the log: everything the daemon has decided, as text and back.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "core/job/state.h"

namespace mete::wire {

std::string encode(const core::State::Parts& parts);
// corrupt: it contradicts itself.
// `of_event`: what the first snapshots did not say, the event that they are of.
Result<core::State::Parts> decode_parts(std::string_view json, std::uint64_t of_event = 0);

}  // namespace mete::wire
