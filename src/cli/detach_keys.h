// SPDX-License-Identifier: Apache-2.0
// Which of the keys typed into an attached terminal are the program's, and which say that one wants
// to leave: Ctrl-\ twice. Pure.
#pragma once

#include <string>
#include <string_view>

namespace mete::cli {

class DetachKeys {
 public:
  // What the program gets of it. A first Ctrl-\ is held back until the next key says what it was.
  std::string typed(std::string_view bytes);
  bool detached() const { return detached_; }
  // Is a Ctrl-\ held back? Then flush() gives it to the program after all.
  bool holds() const { return held_; }
  std::string flush();

  static constexpr char kKey = '\x1c';  // Ctrl-\, which is SIGQUIT to most programs

 private:
  bool held_ = false;
  bool detached_ = false;
};

}  // namespace mete::cli
