// SPDX-License-Identifier: Apache-2.0
// Spaces as users write them: options of the command line, YAML and JSON files, and the parameter
// dictionaries of Talos. Text in, values out; nothing here opens a file.
//
//   params:
//     lr: {min: 1.0e-5, max: 1.0e-1, log: true}
//     bs: [16, 32, 64]                       # a list: these values
//     layers: {min: 1, max: 8, int: true}
//     momentum: {min: 0, max: 0.99, step: 0.01, when: opt == "sgd"}
//     opt: {values: [sgd, adam]}
//     epochs: 20                             # a scalar: fixed
//   sampler: tpe
//   trials: 100
//   seed: 7
//   keep: bs * layers <= 256
//   metrics: {val_loss: "val_loss=([0-9.eE+-]+)", acc: last}
//   minimize: val_loss
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/sweep/plan.h"

namespace mete::sweep {

// What is not in the file is absent.
struct SpaceFile {
  std::vector<core::sweep::Parameter> params;
  std::optional<core::sweep::Expression> keep;
  std::optional<core::sweep::Method> sampler;
  std::optional<std::uint64_t> trials;
  std::optional<std::uint64_t> seed;
  std::vector<core::sweep::MetricRule> metrics;
  std::optional<core::sweep::Goal> goal;
};

inline constexpr std::size_t kMaxSpaceFile = 4 << 20;  // bytes

// Errors are invalid and begin with "PATH:LINE: "; an unknown key suggests the nearest one. Aliases
// and anchors of YAML are refused. JSON is YAML here. Expressions may use the parameters of the
// file, and Space::make() accepts params and keep, if there are params; the text of a plain scalar
// is kept.
Result<SpaceFile> read_space_file(std::string_view text, const std::string& path);

// A dictionary of Python literals: {'lr': (0.5, 5, 10), 'bs': [4, 8, 16], 'opt': ['adam']}. A list
// holds values. A tuple (min, max, n) is n values from min on, in equal steps, without max:
// (0.5, 5, 10) is 0.5, 0.95, …, 4.55. If min and max are ints, so are the values, cut towards zero,
// each one once. Comments, parentheses, `p = {…}` and trailing commas are accepted; strings,
// numbers, True, False, None ("true", "false", "None" for the program); anything else is an error.
Result<SpaceFile> read_talos(std::string_view text, const std::string& path);

// "lr=1e-3,1e-4": the words as they are; a comma inside quotes does not divide.
Result<core::sweep::Parameter> parse_grid(std::string_view option);
// "val_loss=val_loss: (\S+)", "acc=last". The pattern itself is checked where it is used.
Result<core::sweep::MetricRule> parse_metric(std::string_view option);

}  // namespace mete::sweep
