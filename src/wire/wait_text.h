// SPDX-License-Identifier: Apache-2.0
// Sentences about waits, and others with times in them, for `mete ps`, `show`, `run`, `explain`,
// `top`, errors and documents. Pure: data in, text out.
//
// `now` is given for users, who get times in their time zone ("18:00"), and absent for documents,
// which have UTC ("2026-11-15T18:00:00.000Z").
#pragma once

#include <optional>
#include <string>

#include "base/time.h"
#include "core/place/wait.h"
#include "wire/explain.h"

namespace mete::wire {

// What a job waits for: "8 GiB on one card; card 0: 3.2 GiB free of the 8 GiB needed, alice's job
// 12 (train) holds 55.9 GiB; card 1: held whole by bob's job 14 (serve)". One line, with the
// first four cards and the largest three shares of each. Names come from users and processes, so
// each is made printable.
enum class Cards { kNamed, kLeftOut };
std::string wait_text(const core::Wait& wait, std::optional<WallTime> now = {},
                      Cards cards = Cards::kNamed);
// What is in the way on one card: "3.2 GiB free of the 8 GiB needed, ..."; "": nothing.
std::string card_text(const core::CardWait& card, std::optional<WallTime> now = {});
// "idle since 14:05, is parked at 15:05": a remark about a job, besides its state.
std::string remark_text(const core::Remark& remark, std::optional<WallTime> now = {});
// The sentence for an explained job: "waits for 8 GiB on one card; ...", "it has started at 14:05",
// with its remark.
std::string explained_text(const ExplainDocument& document, std::optional<WallTime> now = {},
                           Cards cards = Cards::kNamed);

// The data of a wait as JSON, without a sentence. Equal waits, and only they, have equal texts.
std::string wait_json(const core::Wait& wait);

}  // namespace mete::wire
