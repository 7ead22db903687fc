// SPDX-License-Identifier: Apache-2.0
// mete-checkpoint: has the driver checkpoint a process and bring it back.
#include "park/checkpoint.h"

int main(int argc, char** argv) { return mete::park::checkpoint_main(argc, argv); }
