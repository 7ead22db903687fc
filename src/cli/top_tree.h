// SPDX-License-Identifier: Apache-2.0
// All processes of each job, for the tree of `mete top`. The daemon reports only processes on
// cards: it would have to read all of /proc all the time. Here /proc is read while a tree is shown.
#pragma once

#include "wire/snapshot.h"

namespace mete::cli {

// Adds the descendants of its runner to each job whose runner is found, by pid. Descendants of a
// job inside of a job belong to the inner job. Processes that cannot be read are left out.
void add_families(wire::Snapshot& snapshot);

}  // namespace mete::cli
