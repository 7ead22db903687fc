// SPDX-License-Identifier: Apache-2.0
// Says where a run failed, so that it can be run again.
#pragma once

#include <cstdint>

namespace mete::sim {

void report_failure(const char* what, std::uint64_t seed, std::uint64_t step);

}  // namespace mete::sim
