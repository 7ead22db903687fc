// SPDX-License-Identifier: Apache-2.0
// An explanation as its document: core::Explanation → wire::ExplainDocument.
//
//   const core::Explanation why =
//       core::explain(engine.state(), engine.moment(), engine.sight(), *job);
//   responder.reply(200, wire::encode(serve::view_of(why, now, machine.pool, machine.idle_since)));
#pragma once

#include <map>

#include "engine/engine.h"
#include "wire/explain.h"

namespace mete::serve {

// What core does not know: the names of cards are those of `pool`, and `idle_since` says which
// jobs do nothing on theirs. `remark` is core::remark_of() the job.
wire::ExplainDocument view_of(const core::Explanation& why, WallTime now, const core::Pool& pool,
                              const std::map<core::JobId, WallTime>& idle_since,
                              core::Remark remark = {});

}  // namespace mete::serve
