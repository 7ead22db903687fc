// SPDX-License-Identifier: Apache-2.0
// The terminal while a screen is drawn on it: keys arrive at once and unechoed, the mouse reports
// where it was pressed, and the former screen comes back at the end. Ctrl-C and Ctrl-Z stay
// signals. One at a time.
#pragma once

#include <termios.h>

#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "top/canvas.h"
#include "top/paint.h"

namespace mete::top {

// What the environment says about the terminal on stdout.
struct TerminalKind {
  bool terminal = false;  // stdout is one
  bool dumb = false;      // cannot position its cursor
  bool unicode = true;
  Depth depth = Depth::kNone;
};
TerminalKind terminal_kind();

class Terminal {
 public:
  // io: there is no terminal to read keys from.
  static Result<Terminal> open();
  Terminal(Terminal&&) = default;
  Terminal& operator=(Terminal&&) = delete;
  ~Terminal() { leave(); }

  Result<void> enter();
  void leave();

  int descriptor() const { return tty_.get(); }
  // Typed input; "": nothing now. io: it has closed.
  Result<std::string> read();
  Result<void> write(std::string_view bytes);
  Size size() const;

 private:
  explicit Terminal(Fd tty) : tty_(std::move(tty)) {}

  Fd tty_;
  termios before_{};
  bool entered_ = false;
};

}  // namespace mete::top
