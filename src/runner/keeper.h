// SPDX-License-Identifier: Apache-2.0
// What mete-keeper does: claims one attempt of one job, becomes its user, runs it, handles its
// output, and records on disk how it ended. It depends on no other process meanwhile.
#pragma once

#include "base/fd.h"
#include "wire/keeper.h"

namespace mete::runner {

// Returns the exit code of the keeper itself, for logs alone: the result of the job is in the
// record; why there is no record was written to `words`.
int keep(const wire::KeeperPlan& plan, Fd words);

// Reads the plan from descriptor 3 and calls keep().
int keeper_main(int argc, char** argv);

}  // namespace mete::runner
