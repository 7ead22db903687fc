// SPDX-License-Identifier: Apache-2.0
// Turns an explanation into its document: core::Explanation → wire::ExplainDocument.
//
//   const core::Explanation why =
//       core::explain(engine.state(), engine.moment(), engine.sight(), *job);
//   responder.reply(200, wire::encode(serve::view_of(why, now, machine.pool, machine.idle_since)));
#pragma once

#include <cstdint>
#include <map>

#include "engine/engine.h"
#include "wire/explain.h"
#include "wire/job.h"

namespace mete::serve {

// Adds what core does not know: `pool` has the names of cards, `idle_since` the idle jobs. `remark`
// is core::remark_of() the job.
wire::ExplainDocument view_of(const core::Explanation& why, WallTime now, const core::Pool& pool,
                              const std::map<core::JobId, WallTime>& idle_since,
                              core::Remark remark = {});
// What other users are told of a job: why it waits in a word, its place, and the forecast.
wire::ExplainDocument view_of(const wire::JobView& row, WallTime now, std::uint64_t in_line);

}  // namespace mete::serve
