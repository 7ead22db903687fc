// SPDX-License-Identifier: Apache-2.0
#include "cli/wait_line.h"

#include <cstdio>

#include "base/text.h"
#include "base/time.h"

namespace mete::cli {

namespace {

constexpr std::int64_t kQuietS = 60;

}  // namespace

void WaitLine::show(const std::string& what, std::int64_t waited_s) {
  if (what.empty() || what == text_) {
    refresh(waited_s);
    return;
  }
  text_ = what;
  if (line_.terminal()) {
    refresh(waited_s);
  } else if (!told_ || waited_s >= *told_ + kQuietS) {
    // Into a log: the line moves with every job before us, and nobody reads a thousand of them.
    told_ = waited_s;
    const std::string line = "mete: waiting for " + base::printable(text_) + "\n";
    (void)std::fwrite(line.data(), 1, line.size(), stderr);
    (void)std::fflush(stderr);
  }
}

void WaitLine::refresh(std::int64_t waited_s) {
  if (wakes()) line_.draw("mete: waiting " + base::duration_in_words(waited_s) + " for " + text_);
}

}  // namespace mete::cli
