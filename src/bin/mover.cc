// SPDX-License-Identifier: Apache-2.0
// mete-mover: holds the parked memory of one card.
#include "park/mover.h"

int main(int argc, char** argv) { return mete::park::mover_main(argc, argv); }
