// SPDX-License-Identifier: Apache-2.0
// An explanation as its document: core::Explanation → wire::ExplainDocument.
//
//   const core::Explanation why =
//       core::explain(engine.state(), engine.moment(), engine.sight(), *job);
//   responder.reply(200, wire::encode(serve::view_of(why, now, machine.cards)));
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"
#include "wire/cards.h"
#include "wire/explain.h"

namespace mete::serve {

// What core does not know: the names of cards are those of `cards`, and `idle_since` says which
// jobs do nothing on theirs. `remark` is core::remark_of() the job.
wire::ExplainDocument view_of(const core::Explanation& why, WallTime now,
                              const std::vector<wire::CardView>& cards,
                              const std::map<core::JobId, WallTime>& idle_since,
                              core::Remark remark = {});

}  // namespace mete::serve
