// SPDX-License-Identifier: Apache-2.0
// The command line program. Everything is in cli/.
#include "cli/dispatch.h"

int main(int argc, char** argv) { return mete::cli::run(argc, argv); }
