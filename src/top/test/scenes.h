// SPDX-License-Identifier: Apache-2.0
// Machines to draw: a number of cards and jobs, always equal for equal numbers.
#pragma once

#include <cstddef>

#include "wire/snapshot.h"

namespace mete::top {

struct SceneSize {
  std::size_t cards = 4;
  std::size_t jobs = 8;  // two of three run, the rest waits
  bool wide = false;     // names in Chinese, Korean, emoji, with combining marks
};
wire::Snapshot make_snapshot(const SceneSize& size);

}  // namespace mete::top
