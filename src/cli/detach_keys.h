// SPDX-License-Identifier: Apache-2.0
// Separates the keys typed into an attached terminal: those for the program, and Ctrl-\ twice,
// which detaches. Pure.
#pragma once

#include <string>
#include <string_view>

namespace mete::cli {

class DetachKeys {
 public:
  // The bytes for the program. A first Ctrl-\ is held back until the next key decides.
  std::string typed(std::string_view bytes);
  bool detached() const { return detached_; }
  // Whether a Ctrl-\ is held back. flush() then passes it to the program.
  bool holds() const { return held_; }
  std::string flush();

  static constexpr char kKey = '\x1c';  // Ctrl-\, SIGQUIT to most programs

 private:
  bool held_ = false;
  bool detached_ = false;
};

}  // namespace mete::cli
