// SPDX-License-Identifier: Apache-2.0
// One event as one line of text. Pure: a document in, a line out.
#pragma once

#include <string>

#include "base/time.h"
#include "wire/event.h"

namespace mete::cli {

// "    81  14:05:09  job.ended      12_3    failed 3"
std::string event_text(const wire::EventDocument& event, WallTime now);

}  // namespace mete::cli
