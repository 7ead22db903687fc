// SPDX-License-Identifier: Apache-2.0
// A quick no: what a pool has to give at most, looked at once, so that thousands of requests that
// are too large for it need not be placed to be refused. It never refuses what place_now() would
// place; what it lets through may still have no room (types, devices, processes).
#pragma once

#include <vector>

#include "core/place/place.h"

namespace mete::core {

class Spare {
 public:
  explicit Spare(const Pool& pool);
  bool may_have(const Request& request) const;

 private:
  struct Free {
    Bytes capacity;
    Bytes bytes;         // for a share
    bool whole = false;  // nobody has anything of it
  };
  std::vector<Free> cards_;  // that have something
};

}  // namespace mete::core
