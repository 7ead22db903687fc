// SPDX-License-Identifier: Apache-2.0
// What a request needs of each card that could ever serve it, or why none of them can: everything
// about a request that does not depend on who else is there. Inside of core/place.
#pragma once

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "core/place/place.h"

namespace mete::core {

struct Need {
  std::size_t at = 0;  // position in the pool
  bool whole = false;
  Bytes bytes;           // the share; of a whole card the least that is of use
  Bytes most = {};       // of a growing share
  Bytes mover = {};      // what must be free besides
  bool not_now = false;  // --where is not true of the card as it is; it may be another time
};

struct Needs {
  GpuRequest gpu;
  std::size_t wanted = 0;  // different cards; zero: no GPU
  bool named = false;      // by --devices: all of `cards`, in that order
  std::vector<Need> cards;
  bool machine_not_now = false;  // without a GPU: --where is not true of the machine as it is
};

// Errors as place() gives them: invalid, infeasible, unsupported.
Result<Needs> needs_of(const Pool& pool, const Request& request);

}  // namespace mete::core
