// SPDX-License-Identifier: Apache-2.0
// What is checked of a YAML text before its tree is built, so that the tree is small and has no
// links in it.
#pragma once

#include <yaml-cpp/mark.h>

#include <cstddef>
#include <string>

#include "base/result.h"
#include "sweep/space_parts.h"

namespace mete::sweep {

inline constexpr std::size_t kMaxNodes = 1'000'000;  // yaml-cpp takes some hundred bytes for each

std::size_t line_of(const YAML::Mark& mark);

// invalid: a second document, an anchor or alias, more than kMaxNodes values. Throws what yaml-cpp
// throws.
Result<void> check_outline(const std::string& text, const SpaceLines& lines);

}  // namespace mete::sweep
