// SPDX-License-Identifier: Apache-2.0
// What is said to people and to programs: data to stdout, talk to stderr, errors in one shape, exit
// codes from one table. Colour only on a terminal, never with NO_COLOR.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/exit_code.h"
#include "base/result.h"

namespace mete::cli {

using base::exit_code_of;
using base::kExitBadFile;
using base::kExitCannotRun;
using base::kExitDenied;
using base::kExitFailed;
using base::kExitInfeasible;
using base::kExitNoRoom;
using base::kExitNotFound;
using base::kExitOk;
using base::kExitTimeout;
using base::kExitUsage;

enum class Format { kText, kJson };

class Output {
 public:
  explicit Output(Format format) : format_(format) {}
  // All of it goes elsewhere: what is watched is drawn as one block.
  Output(Format format, std::function<void(std::string_view)> everything)
      : format_(format), everything_(std::move(everything)) {}

  bool json() const { return format_ == Format::kJson; }

  // A document or a table, to stdout; a newline is added. What cannot be written is remembered, and
  // nothing follows it.
  void data(std::string text) const;
  // The same for bytes as they are.
  void bytes(std::string_view bytes) const;
  // Whether something could not be written to stdout.
  bool failed() const { return write_error_ != 0; }
  // The exit code of the whole: output that was lost is a failure, and said. Whoever just stops
  // reading (| head) is none.
  int finish(int exit_code) const;
  // One line of talk to stderr: "mete: ...".
  void say(std::string_view text) const;
  // say(), for what knows nothing of outputs. Not longer than this one lives.
  std::function<void(std::string_view)> talk() const {
    return [this](std::string_view text) { say(text); };
  }
  // A line to stderr as it is (JSON).
  void say_json(std::string_view text) const;
  // Prints the error to stderr and returns its exit code.
  //   error: --gpu 200G can never fit here
  //     the largest card is card 0 (H200, 140.4 GiB)
  //   hint: --gpu 140.4G would fit
  int fail(const Error& error) const { return fail(error, exit_code_of(error.code)); }
  int fail(const Error& error, int exit_code) const;

 private:
  void write_talk(std::string text) const;

  Format format_;
  std::function<void(std::string_view)> everything_;
  mutable int write_error_ = 0;  // of stdout: errno
};

// Whether a terminal is there that understands more than lines; whether it may have colours.
bool is_terminal(int fd);
bool wants_colour(int fd);

// Whether whoever read our stdout has left: a pipe tells before the next write would.
bool nobody_reads();

// Value of -o: "text" or "json".
Result<Format> parse_format(std::string_view text);

// Now, as documents say it: "2026-11-15T05:50:43.123Z".
std::string timestamp();

}  // namespace mete::cli
