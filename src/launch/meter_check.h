// SPDX-License-Identifier: Apache-2.0
// Whether the meter would really be loaded into a program that this user starts now. The loader
// prints a line and goes on without a library that it cannot preload, and the program would run
// without its limit: so every path to an exec checks here first, at the last moment.
//
// What no check of a file can see stays as it is: a program that is linked statically or
// set-user-ID does not preload anything.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace mete::launch {

// The paths of LD_PRELOAD: libmete.so first, then its companions. Each must be a whole, readable
// library for this machine that may be mapped for execution; the first must be our meter, for grant
// files of the version that we write. busy: this is not so at the moment, and the program must not
// be started; a retry may succeed. Nothing of the files is executed.
Result<void> check_meter(const std::vector<std::string>& preload);

}  // namespace mete::launch
