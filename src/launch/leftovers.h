// SPDX-License-Identifier: Apache-2.0
// Grant files whose launcher was killed before it could remove them.
#pragma once

#include <string>

namespace mete::launch {

// Removes the leftovers in FOLDER: files that no living launcher has locked and no process uses,
// because they are from another boot, or no living process was started with them or has them
// mapped. In doubt a file stays (it is a megabyte); errors are ignored, since a leftover must not
// keep a new job from starting. Returns how many were removed.
int remove_leftovers(const std::string& folder);

}  // namespace mete::launch
