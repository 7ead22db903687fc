// SPDX-License-Identifier: Apache-2.0
// The one line that says what a waiting program waits for, how long already, and who holds it. On a
// terminal it stays one line, kept up to date; elsewhere a line is written when there is news, at
// most once a minute, and no control character ever.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/status_line.h"

namespace mete::cli {

class WaitLine {
 public:
  void show(const std::string& what, std::int64_t waited_s);
  // The time has moved on.
  void refresh(std::int64_t waited_s);
  void clear() { line_.clear(); }
  // Must refresh() be called about every second?
  bool wakes() const { return line_.terminal() && !text_.empty(); }

 private:
  StatusLine line_;
  std::optional<std::int64_t> told_;  // when the last line was written, in seconds of waiting
  std::string text_;
};

}  // namespace mete::cli
