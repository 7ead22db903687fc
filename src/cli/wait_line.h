// SPDX-License-Identifier: Apache-2.0
// The one line that says what a waiting program waits for, how long already, and who holds it. On a
// terminal it stays one line, kept up to date; elsewhere a line is written when there is news, at
// most once a minute, and no control character ever.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "wire/job.h"

namespace mete::cli {

class WaitLine {
 public:
  WaitLine();

  void show(const core::Wait& wait, std::int64_t waited_s);
  // The time has moved on.
  void refresh(std::int64_t waited_s);
  void clear();
  // Must refresh() be called about every second?
  bool wakes() const { return terminal_ && !text_.empty(); }

 private:
  void draw(std::int64_t waited_s);

  bool terminal_;
  bool drawn_ = false;
  std::optional<std::int64_t> told_;  // when the last line was written, in seconds of waiting
  std::string text_;
};

// Cut to `columns`, at a character's border.
std::string fit_to(const std::string& text, std::size_t columns);

}  // namespace mete::cli
