// SPDX-License-Identifier: Apache-2.0
// See watch.h.
#include "cli/watch.h"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/moment.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/wait_signals.h"
#include "seam/clock.h"

namespace mete::cli {

namespace {

constexpr unsigned kDefaultMs = 2'000;
constexpr unsigned kLeastMs = 50;
constexpr unsigned kMostMs = 86'400'000;

std::size_t screen_rows() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 3) return 24;
  return size.ws_row;
}

// Draws blocks over one another. The last one stays when we leave.
class Screen {
 public:
  explicit Screen(const Output& output) : output_(output) { output_.bytes("\033[?25l"); }
  ~Screen() { output_.bytes("\033[?25h"); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // A terminal that became narrower has wrapped the old lines: start anew.
  void resized() { rows_drawn_ = 0, clear_ = true; }

  void draw(std::string_view block) {
    std::vector<std::string_view> lines = base::split(block, '\n');
    if (!lines.empty() && lines.back().empty()) lines.pop_back();
    const std::size_t most = screen_rows() - 1;
    const std::size_t hidden = lines.size() > most ? lines.size() - most + 1 : 0;
    lines.resize(lines.size() - hidden);
    std::string frame = clear_ ? "\033[H\033[2J" : "";
    if (rows_drawn_ > 0) frame += "\033[" + std::to_string(rows_drawn_) + "A";
    for (const std::string_view line : lines) frame.append(line).append("\033[K\n");
    if (hidden > 0) frame += "… and " + std::to_string(hidden) + " more lines\033[K\n";
    output_.bytes(frame += "\033[J");
    rows_drawn_ = lines.size() + (hidden > 0 ? 1 : 0);
    clear_ = false;
  }

 private:
  const Output& output_;
  std::size_t rows_drawn_ = 0;
  bool clear_ = false;
};

// The signal that ends us; 0: stdout is closed.
int draw_until_ended(const Parsed& parsed, const Output& output, Print* print, unsigned period_ms) {
  WaitSignals signals({SIGWINCH});
  std::optional<Screen> screen;
  if (is_terminal(STDOUT_FILENO) && !output.json()) screen.emplace(output);
  for (bool first = true;; first = false) {
    if (output.json()) {
      (void)print(parsed, output);
    } else {
      const WallTime now = seam::system_clock().wall();
      std::string block = moment_to_the_second(now, now) + "\n";
      (void)print(parsed,
                  Output(Format::kText, [&block](std::string_view more) { block += more; }));
      if (screen)
        screen->draw(block);
      else
        output.bytes((first ? "" : "\n") + block);
    }
    if (output.failed()) return 0;
    pollfd watched[] = {{signals.descriptor(), POLLIN, 0}, {STDOUT_FILENO, 0, 0}};
    if (poll(watched, 2, static_cast<int>(period_ms)) <= 0) continue;
    if (const int signal = signals.take(); signal != 0 && signal != SIGWINCH) return signal;
    if ((watched[1].revents & (POLLERR | POLLHUP)) != 0) return 0;
    if (screen) screen->resized();
  }
}

}  // namespace

Result<unsigned> parse_period_ms(std::string_view option, std::string_view text) {
  const Result<base::Milli> seconds = base::parse_milli(text);
  const std::string what = std::string(option) + " " + base::quote(text);
  if (!seconds) return Error::invalid(what + " is no number of seconds").with_hint("2, or 0.5");
  if (seconds->whole > kMostMs / 1000 || seconds->whole * 1000 + seconds->thousandths < kLeastMs)
    return Error::invalid(what + " is too " + (seconds->whole == 0 ? "often" : "rare"))
        .with_hint("0.05 to 86400 seconds");
  return static_cast<unsigned>(seconds->whole * 1000 + seconds->thousandths);
}

int run_or_watch(const Parsed& parsed, const Output& output, Print* print) {
  const std::string* every = parsed.find(kWatchOption.name);
  if (every == nullptr) return print(parsed, output);
  const Result<unsigned> period_ms =
      every->empty() ? Result<unsigned>(kDefaultMs) : parse_period_ms(kWatchOption.name, *every);
  if (!period_ms) return output.fail(period_ms.error());
  const int signal = draw_until_ended(parsed, output, print, *period_ms);
  if (signal != 0) (void)raise(signal);  // the cursor is restored: now the signal acts as usual
  return kExitOk;
}

}  // namespace mete::cli
