// SPDX-License-Identifier: Apache-2.0
// Cards for people. Pure: a document in, text out.
#pragma once

#include <optional>
#include <string>

#include "wire/cards.h"

namespace mete::cli {

std::string cards_table(const wire::CardsDocument& document, std::optional<std::size_t> width);

// What helps with what the driver says; "" when we do not know. Also for `mete doctor`.
std::string driver_advice(std::string_view trouble);

}  // namespace mete::cli
