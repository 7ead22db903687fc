// SPDX-License-Identifier: Apache-2.0
// The command line of mete, from argv to an exit code. Everything of main() that can be called from
// a test.
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"

namespace mete::cli {

int run(int argc, char** argv);

// Whether an error in the words is printed as JSON. Looks only at words before the command of the
// job.
Format wanted_format(const std::vector<std::string>& args);

}  // namespace mete::cli
