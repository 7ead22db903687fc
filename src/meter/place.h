// SPDX-License-Identifier: Apache-2.0
// Where a call without a device argument lands: the current context and its card. A context that
// the meter meets for the first time here (created through a private table) is charged at once.
#pragma once

#include "meter/state.h"

namespace mete::meter {

struct Place {
  CUcontext context;
  CUdevice device;
  int card;
  uint32_t context_id;
};

// False when there is no current context, or no driver: the call then goes to the driver, whose
// error is right.
bool find_place(Place* place);

}  // namespace mete::meter
