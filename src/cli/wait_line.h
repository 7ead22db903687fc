// SPDX-License-Identifier: Apache-2.0
// The line that says what a waiting program waits for: how long it has waited, its place in the
// queue, the forecast of its start, and what holds the cards. On a terminal it is one line, kept up
// to date; elsewhere a line is written when there is news, at most once a minute, without control
// characters.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/status_line.h"

namespace mete::cli {

class WaitLine {
 public:
  // Whether show() would write something new for this text: then `queue` should be up to date.
  bool wants(const std::string& what, std::int64_t waited_s) const;
  // `what`: "8 GiB on one card; …"; `queue`: "2 jobs ahead, starts about 14:20", or "".
  void show(const std::string& what, const std::string& queue, std::int64_t waited_s);
  // Shows the time that has passed.
  void refresh(std::int64_t waited_s);
  void clear() { line_.clear(); }
  // Whether refresh() must be called about every second.
  bool wakes() const { return line_.terminal() && !what_.empty(); }

 private:
  StatusLine line_;
  std::optional<std::int64_t> told_;  // when the last line was written, in seconds of waiting
  std::string what_;
  std::string queue_;
};

}  // namespace mete::cli
