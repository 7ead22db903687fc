// SPDX-License-Identifier: Apache-2.0
// mete-keeper: the parent of one detached job.
#include "runner/keeper.h"

int main(int argc, char** argv) { return mete::runner::keeper_main(argc, argv); }
