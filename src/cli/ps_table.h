// SPDX-License-Identifier: Apache-2.0
// Jobs for people. Pure: documents in, a table out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "wire/job.h"

namespace mete::cli {

std::string ps_table(const std::vector<wire::JobView>& jobs, WallTime now,
                     std::optional<std::size_t> width);

}  // namespace mete::cli
