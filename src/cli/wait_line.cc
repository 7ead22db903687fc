// SPDX-License-Identifier: Apache-2.0
#include "cli/wait_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/time.h"

namespace mete::cli {

namespace {

constexpr std::int64_t kQuietS = 60;

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

std::string fit_to(const std::string& text, std::size_t columns) {
  std::size_t used = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    if (!begins) continue;
    if (++used > columns) {
      std::string cut = text.substr(0, i);
      // Room for the sign that something is missing.
      while (!cut.empty() && (static_cast<unsigned char>(cut.back()) & 0xc0) == 0x80)
        cut.pop_back();
      if (!cut.empty()) cut.pop_back();
      return cut + "…";
    }
  }
  return text;
}

WaitLine::WaitLine() {
  const char* term = std::getenv("TERM");
  terminal_ = isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

void WaitLine::show(const core::Wait& wait, std::int64_t waited_s) {
  if (wait.text.empty() || wait.text == text_) {
    refresh(waited_s);
    return;
  }
  text_ = wait.text;
  if (terminal_) {
    draw(waited_s);
  } else if (!told_ || waited_s >= *told_ + kQuietS) {
    // Into a log: the line moves with every job before us, and nobody reads a thousand of them.
    told_ = waited_s;
    write_text("mete: waiting for " + text_ + "\n");
  }
}

void WaitLine::refresh(std::int64_t waited_s) {
  if (terminal_ && !text_.empty()) draw(waited_s);
}

void WaitLine::draw(std::int64_t waited_s) {
  const std::string line = "mete: waiting " + base::duration_in_words(waited_s) + " for " + text_;
  drawn_ = true;
  write_text("\r\033[K" + fit_to(line, terminal_columns() - 1));
}

void WaitLine::clear() {
  if (drawn_) write_text("\r\033[K");
  drawn_ = false;
}

}  // namespace mete::cli
