// SPDX-License-Identifier: Apache-2.0
#include "cli/status_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "cli/output.h"
#include "cli/table.h"

namespace mete::cli {

namespace {

std::size_t terminal_columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

void write_text(const std::string& text) {
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fflush(stderr);
}

}  // namespace

StatusLine::StatusLine() : terminal_(is_terminal(STDERR_FILENO)) {}

void StatusLine::draw(const std::string& text) {
  if (!terminal_) return;
  drawn_ = true;
  write_text("\r\033[K" + fit_columns(printable(text), terminal_columns() - 1));
}

void StatusLine::clear() {
  if (drawn_) write_text("\r\033[K");
  drawn_ = false;
}

}  // namespace mete::cli
