// SPDX-License-Identifier: Apache-2.0
// What to request next time, from what a job was seen to need. Pure.
#pragma once

#include <optional>
#include <string>

#include "wire/show.h"

namespace mete::serve {

// Nothing for a job that has not ended, had no card, or requested about what it needed.
std::optional<wire::ShowDocument::Advice> advice_for(const core::Job& job, const core::Pool& pool);

// For a job that ran out of GPU memory: its request, its cap and its peak.
std::optional<std::string> oom_note(const core::Job& job);

}  // namespace mete::serve
