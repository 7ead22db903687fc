// SPDX-License-Identifier: Apache-2.0
// Figures of the queue as text. Pure: a document in, lines out.
#pragma once

#include <string>

#include "wire/queue.h"

namespace mete::cli {

std::string stats_text(const wire::StatsDocument& document);
// The forecasts alone.
std::string eta_text(const wire::StatsDocument::Forecasts& forecasts);

}  // namespace mete::cli
