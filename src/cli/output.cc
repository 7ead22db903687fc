// SPDX-License-Identifier: Apache-2.0
// See output.h.
#include "cli/output.h"

#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/fd.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/json.h"
#include "seam/clock.h"

namespace mete::cli {

namespace {

// Makes text from outside printable: paths, words, lines of a daemon's log. All lines have the same
// indentation: a mark below a character stays below it.
std::string printable_lines(std::string_view text, std::string_view indent = "") {
  std::string out;
  const char* end = "";
  for (const std::string_view line : base::split(text, '\n')) {
    out.append(std::exchange(end, "\n")).append(indent).append(base::printable(line));
  }
  return out;
}

}  // namespace

bool is_terminal(int fd) {
  const std::string kind = base::variable("TERM");
  return isatty(fd) == 1 && !kind.empty() && kind != "dumb";
}

bool wants_colour(int fd) { return base::variable("NO_COLOR").empty() && is_terminal(fd); }

void Output::data(std::string text) const {
  // A daemon's document contains text of other users, and may be read on a terminal.
  if (json()) text = base::printable_json(std::move(text));
  bytes(text += '\n');
}

// In one write, so that lines of several processes do not mix.
void Output::write_talk(std::string text) const {
  text += '\n';
  if (everything_) return everything_(text);
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fflush(stderr);
}

void Output::bytes(std::string_view bytes) const {
  if (everything_) return everything_(bytes);
  if (!failed() && !base::write_all(STDOUT_FILENO, bytes)) write_error_ = errno;
}

int Output::finish(int exit_code) const {
  if (!failed() || write_error_ == EPIPE) return exit_code;
  const int code = fail(Error::io("the output could not be written")
                            .with_evidence(std::generic_category().message(write_error_)));
  return exit_code == kExitOk ? code : exit_code;
}

void Output::say(std::string_view text) const { write_talk("mete: " + printable_lines(text)); }

void Output::say_json(std::string_view text) const {
  write_talk(base::printable_json(std::string(text)));
}

int Output::fail(const Error& error, int exit_code) const {
  if (json()) {
    JsonObject object;
    object.text("code", base::to_string(error.code)).text("message", error.message);
    if (!error.evidence.empty()) object.text("evidence", error.evidence);
    if (!error.hint.empty()) object.text("hint", error.hint);
    object.number("exit", static_cast<std::uint64_t>(exit_code));
    say_json(JsonObject().raw("error", object.str()).str());
    return exit_code;
  }
  const bool colour = !everything_ && wants_colour(STDERR_FILENO);
  std::string text = colour ? "\033[1;31merror:\033[0m " : "error: ";
  text += printable_lines(error.message);
  if (!error.evidence.empty()) text += "\n" + printable_lines(error.evidence, "  ");
  if (!error.hint.empty())
    text += (colour ? "\n\033[1mhint:\033[0m " : "\nhint: ") + printable_lines(error.hint);
  write_talk(text);
  return exit_code;
}

Result<Format> parse_format(std::string_view text) {
  if (text == "text") return Format::kText;
  if (text == "json") return Format::kJson;
  return Error::invalid("-o " + base::quote(text) + ": there is no such format")
      .with_hint("write -o json or -o text");
}

bool nobody_reads() {
  pollfd reader{STDOUT_FILENO, 0, 0};
  return poll(&reader, 1, 0) > 0 && (reader.revents & (POLLERR | POLLHUP)) != 0;
}

std::string timestamp() { return to_string(seam::system_clock().wall()); }

}  // namespace mete::cli
