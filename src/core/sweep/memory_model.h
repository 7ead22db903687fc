// SPDX-License-Identifier: Apache-2.0
// --gpu auto: how much memory a trial needs, learned from the peaks of earlier trials. The memory
// of a training grows with its batch size, width, depth, … and their products; which parameters
// drive it is found by fitting. Pure; equal observations give equal answers.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "core/sweep/space.h"

namespace mete::core::sweep {

// What a trial that has ended used at its peak. `refused`: it ran out of memory under a limit of
// `peak`, so that it needs more than that.
struct Observed {
  Point point;
  Bytes peak;
  bool refused = false;
};

// After how many peaks a model is made. Until then trials run with room (`first`).
inline constexpr std::size_t kFirstTrials = 6;

struct Need {
  Bytes bytes;           // to be granted: the estimate with its margin, at most `card`
  bool learned = false;  // false: too little is known, and the trial gets `first`
};

// What to grant to a trial with this point. `observed`: in the order in which the trials ended.
// `card`: the capacity of the smallest card it may run on; `first`: what trials get before anything
// is known. Never below what a trial whose memory-driving parameters are equal has used, and above
// every refused one with equal ones; `first` at least until one of them succeeds, since the model
// is wrong there. Otherwise above `first` only if more than that is expected.
Need need_of(const Space& space, std::span<const Observed> observed, const Point& point, Bytes card,
             Bytes first);

// After a trial ran out of memory with `granted`: what its second run gets: half as much again, or
// `predicted` if that is more, at most `card`. `predicted`: need_of() with this refusal observed.
Bytes after_refusal(Bytes granted, Bytes predicted, Bytes card);

}  // namespace mete::core::sweep
