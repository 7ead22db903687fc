// SPDX-License-Identifier: Apache-2.0
// An explanation as its document: core::Explanation → wire::ExplainDocument.
//
//   const core::Explanation why =
//       core::explain(engine.state(), engine.moment(), engine.sight(), *job);
//   responder.reply(200, wire::encode(serve::view_of(why, now, machine.cards)));
#pragma once

#include <vector>

#include "engine/engine.h"
#include "wire/cards.h"
#include "wire/explain.h"

namespace mete::serve {

// The names of cards, which core does not know, are those of `cards`.
wire::ExplainDocument view_of(const core::Explanation& why, WallTime now,
                              const std::vector<wire::CardView>& cards);

}  // namespace mete::serve
