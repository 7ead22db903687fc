// SPDX-License-Identifier: Apache-2.0
// The whole family of each job, for the tree of `mete top`: the daemon tells of processes on cards
// alone, since it would look through all of /proc for everybody all the time. Here that is done
// while somebody looks at a tree.
#pragma once

#include "wire/snapshot.h"

namespace mete::cli {

// To each job whose runner is found: its descendants, by pid. Those of a job inside of it are that
// job's. What cannot be seen is left out.
void add_families(wire::Snapshot& snapshot);

}  // namespace mete::cli
