// SPDX-License-Identifier: Apache-2.0
// What a request needs of each card that could ever serve it, or why no card can: everything about
// a request that does not depend on other jobs. Internal to core/place.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "core/place/place.h"

namespace mete::core {

struct Need {
  std::size_t at = 0;  // position in the pool
  bool whole = false;
  Bytes bytes;           // the share; for a whole card the least that is of use
  Bytes most = {};       // for a growing share
  Bytes mover = {};      // must be free in addition
  bool not_now = false;  // --where is not true of the card now, but may become true
};

struct Needs {
  GpuRequest gpu;
  std::size_t wanted = 0;  // number of cards; zero: no GPU
  bool named = false;      // by --devices: all of `cards`, in this order
  std::vector<Need> cards;
  bool machine_not_now = false;  // without a GPU: --where is not true of the machine now
};

// Errors as place() gives them: invalid, infeasible, unsupported.
Result<Needs> needs_of(const Pool& pool, const Request& request);

}  // namespace mete::core
