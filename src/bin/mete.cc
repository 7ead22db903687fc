// SPDX-License-Identifier: Apache-2.0
// The command line program. Everything is in cli/.
#include "base/fd.h"
#include "cli/dispatch.h"

int main(int argc, char** argv) {
  mete::base::fill_standard_descriptors();
  mete::base::outlive_file_size_limit();
  return mete::cli::run(argc, argv);
}
