// SPDX-License-Identifier: Apache-2.0
// See terminal.h.
#include "top/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.h"
#include "base/process.h"
#include "base/text.h"

namespace mete::top {

namespace {

// The alternate screen, no cursor, mouse buttons in the form without an upper bound (SGR 1006).
constexpr std::string_view kEnter = "\033[?1049h\033[?25l\033[?1000h\033[?1006h\033[2J";
constexpr std::string_view kLeave = "\033[0m\033[?1006l\033[?1000l\033[?25h\033[?1049l";
constexpr std::size_t kMaxSide = 1'000;  // of a screen that is drawn; more is no terminal

// The first of them that is set decides; where none is, terminals of today are meant.
bool says_unicode() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = base::to_lower(base::variable(name));
    if (value.empty()) continue;
    return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
  }
  return true;
}

Depth depth_of(const std::string& term) {
  if (!base::variable("NO_COLOR").empty()) return Depth::kNone;
  if (term.starts_with("vt1") || term.starts_with("vt2")) return Depth::kNone;
  const bool many = term.find("256color") != std::string::npos ||
                    term.find("direct") != std::string::npos ||
                    !base::variable("COLORTERM").empty();
  return many ? Depth::k256 : Depth::k16;
}

}  // namespace

TerminalKind terminal_kind() {
  const std::string term = base::variable("TERM");
  TerminalKind kind;
  kind.terminal = isatty(STDOUT_FILENO) == 1;
  kind.dumb = term.empty() || term == "dumb" || term == "unknown";
  kind.unicode = says_unicode();
  if (kind.terminal && !kind.dumb) kind.depth = depth_of(term);
  return kind;
}

Result<Terminal> Terminal::open() {
  Fd tty(::open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!tty) return Error::io("there is no terminal to read keys from");
  return Terminal(std::move(tty));
}

Result<void> Terminal::enter() {
  if (entered_) return {};
  if (tcgetattr(tty_.get(), &before_) != 0) return Error::from_errno("ask the terminal", errno);
  termios raw = before_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | IEXTEN);
  raw.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL | INLCR);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  if (tcsetattr(tty_.get(), TCSADRAIN, &raw) != 0)
    return Error::from_errno("set the terminal", errno);
  entered_ = true;
  return write(kEnter);
}

void Terminal::leave() {
  if (!tty_ || !entered_) return;
  entered_ = false;
  (void)write(kLeave);  // the terminal may be gone: then nothing needs restoring
  // Input that was typed ahead is not for the shell.
  (void)tcsetattr(tty_.get(), TCSAFLUSH, &before_);
}

Result<std::string> Terminal::read() {
  char buffer[4096];
  const ssize_t size = ::read(tty_.get(), buffer, sizeof buffer);
  if (size >= 0) return std::string(buffer, static_cast<std::size_t>(size));
  if (errno == EAGAIN || errno == EINTR) return std::string();
  return Error::from_errno("read from the terminal", errno);
}

Result<void> Terminal::write(std::string_view bytes) {
  if (base::write_all(STDOUT_FILENO, bytes)) return {};
  return Error::from_errno("write to the terminal", errno);
}

Size Terminal::size() const {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
    return {};
  return {std::min<std::size_t>(size.ws_col, kMaxSide),
          std::min<std::size_t>(size.ws_row, kMaxSide)};
}

}  // namespace mete::top
