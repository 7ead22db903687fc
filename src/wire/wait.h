// SPDX-License-Identifier: Apache-2.0
// core::Wait and core::Remark as JSON, in JOB and in mete.explain (docs/formats/ps.schema.json).
// Internal to wire/; wait_text.h has what others need.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/place/wait.h"
#include "wire/list.h"

namespace mete::wire {

Result<core::Wait> wait_from_json(std::string_view json);

// The object "wait": "place" in the queue, "for", which is the wait as a sentence, and the data. An
// older daemon has only "for", "holders" and, beside the object, "reason": its sentence is then in
// Wait::words.
void wait_field(Writer& list, const core::SharedWait& wait,
                const std::optional<std::uint64_t>& place);
void wait_field(Reader& list, core::SharedWait& wait, std::optional<std::uint64_t>& place);
// "remark", which is a sentence, and its data. An older daemon has only the sentence.
void remark_fields(Writer& list, const core::Remark& remark);
void remark_fields(Reader& list, core::Remark& remark);
std::string remark_json(const core::Remark& remark);
Result<core::Remark> remark_from_json(std::string_view json);

}  // namespace mete::wire
