// SPDX-License-Identifier: Apache-2.0
// The command line of mete, from argv to an exit code. Everything of main() that can be called from
// a test.
#pragma once

namespace mete::cli {

int run(int argc, char** argv);

}  // namespace mete::cli
