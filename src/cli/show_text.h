// SPDX-License-Identifier: Apache-2.0
// Everything about one job as text. Pure: a document in, lines out.
#pragma once

#include <string>

#include "wire/show.h"

namespace mete::cli {

std::string show_text(const wire::ShowDocument& document);

}  // namespace mete::cli
