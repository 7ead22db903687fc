// SPDX-License-Identifier: Apache-2.0
// What mete-keeper does: claims one attempt of one job, becomes its user, runs it, looks after its
// output, and leaves on disk how it ended. Asks nothing of other processes meanwhile.
#pragma once

#include "base/fd.h"
#include "wire/keeper.h"

namespace mete::runner {

// Returns the exit code of the keeper itself, for logs alone: what is true is in the record,
// and why there is none was said in `words`.
int keep(const wire::KeeperPlan& plan, Fd words);

// Reads the plan from descriptor 3 and keeps it.
int keeper_main(int argc, char** argv);

}  // namespace mete::runner
