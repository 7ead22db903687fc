// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/judge.h"

#include <cstdio>

namespace mete::sim {

void Judge::fail(const std::string& what) const { end_with_failure(what, seed_, step_); }

void Judge::trace(const std::string& what) const {
  std::printf("%llu: %s\n", static_cast<unsigned long long>(step_), what.c_str());
}

void Judge::saw(std::string_view what, std::uint64_t times) {
  const auto found = seen_.find(what);
  if (found == seen_.end())
    seen_.emplace(what, times);
  else
    found->second += times;
}

}  // namespace mete::sim
