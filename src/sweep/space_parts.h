// SPDX-License-Identifier: Apache-2.0
// What the readers of space files share: errors with their line, the checks of a space that know
// where each parameter stands, and metric rules.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sweep/space_file.h"

namespace mete::sweep {

// Lines are counted from 1.
struct SpaceLines {
  std::string path;
  std::size_t params = 1;            // where the parameters begin
  std::vector<std::size_t> of = {};  // of each parameter

  std::string place(std::size_t line) const;  // "space.yaml:3"
  Error at(std::size_t line, std::string message) const;
};

// core::sweep::Space::make() over what was read: an error about one parameter has its line, an
// error about several (a circle of conditions) that of `params`.
Result<void> check_space(const SpaceFile& file, const SpaceLines& lines);

// `pattern`: as the user wrote it, "last" for the last number.
Result<core::sweep::MetricRule> make_metric(std::string_view name, std::string_view pattern);

}  // namespace mete::sweep
