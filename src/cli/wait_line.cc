// SPDX-License-Identifier: Apache-2.0
// See wait_line.h.
#include "cli/wait_line.h"

#include <cstdio>

#include "base/brief.h"
#include "base/text.h"

namespace mete::cli {

namespace {

constexpr std::int64_t kQuietS = 60;

}  // namespace

bool WaitLine::wants(const std::string& what, std::int64_t waited_s) const {
  if (what.empty() || what == what_) return false;
  return line_.terminal() || !told_ || waited_s >= *told_ + kQuietS;
}

void WaitLine::show(const std::string& what, const std::string& queue, std::int64_t waited_s) {
  const bool news = wants(what, waited_s);
  if (!what.empty()) what_ = what;
  queue_ = queue;
  if (line_.terminal()) {
    refresh(waited_s);
  } else if (news) {
    // In a log the first line must do: the wait changes with every job ahead, and a thousand lines
    // would help no reader.
    told_ = waited_s;
    const std::string line = "mete: waiting" + (queue_.empty() ? "" : ", " + queue_) + "; for " +
                             base::printable(what_) + "\n";
    (void)std::fwrite(line.data(), 1, line.size(), stderr);
    (void)std::fflush(stderr);
  }
}

void WaitLine::refresh(std::int64_t waited_s) {
  if (wakes())
    line_.draw("mete: waiting " + base::clock_duration(waited_s) +
               (queue_.empty() ? "" : ", " + queue_) + "; for " + what_);
}

}  // namespace mete::cli
