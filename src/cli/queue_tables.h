// SPDX-License-Identifier: Apache-2.0
// Quotas and reservations for people. Pure: documents in, tables out.
#pragma once

#include <optional>
#include <string>

#include "wire/queue.h"

namespace mete::cli {

// What each user has of what they may have: "2 of 4".
std::string quota_table(const wire::QuotaDocument& document, std::optional<std::size_t> width);
std::string reservation_table(const wire::ReservationsDocument& document,
                              std::optional<std::size_t> width);

}  // namespace mete::cli
