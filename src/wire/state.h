// SPDX-License-Identifier: Apache-2.0
// The snapshot of the log: the whole state of the daemon, as text and back.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "core/job/state.h"

namespace mete::wire {

std::string encode(const core::State::Parts& parts);
// corrupt: contradicts itself. `of_event`: the last event of a snapshot, which the first versions
// did not write.
Result<core::State::Parts> decode_parts(std::string_view json, std::uint64_t of_event = 0);

}  // namespace mete::wire
