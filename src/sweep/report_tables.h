// SPDX-License-Identifier: Apache-2.0
// The tables of the report as HTML: the best trials, the importance of the parameters, why trials
// failed, and all results as JSON for the script of the page. Values in, text out; escaped. ""
// where there is nothing to show.
#pragma once

#include <cstddef>
#include <string>

#include "sweep/results.h"

namespace mete::sweep {

// The JSON of all results has at most this many bytes; the best trials come first, so that the
// page stays below 3 MB however many trials there are.
inline constexpr std::size_t kMaxTable = 2'000'000;

std::string best_table(const Results& results, std::size_t rows);
std::string importance_table(const Results& results);
std::string failures_table(const Results& results);

struct AllResults {
  std::string json;
  std::size_t rows = 0;
};
AllResults all_results(const Results& results, std::size_t most_bytes = kMaxTable);

}  // namespace mete::sweep
