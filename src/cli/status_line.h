// SPDX-License-Identifier: Apache-2.0
// One line of a terminal's stderr that is kept up to date while we wait. Where stderr is no
// terminal nothing is ever drawn.
#pragma once

#include <string>

namespace mete::cli {

class StatusLine {
 public:
  StatusLine();

  bool terminal() const { return terminal_; }
  // In place of what was drawn before, cut to the width of the terminal.
  void draw(const std::string& text);
  void clear();

 private:
  bool terminal_;
  bool drawn_ = false;
};

}  // namespace mete::cli
