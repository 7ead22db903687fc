// SPDX-License-Identifier: Apache-2.0
// All output: data to stdout, talk to stderr, errors in one shape, exit codes from one table.
// Colour only on a terminal, never with NO_COLOR.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/exit_code.h"
#include "base/result.h"

namespace mete::cli {

using base::exit_code_of;
using base::exit_code_of_failure;
using base::kExitBadFile;
using base::kExitCannotRun;
using base::kExitDenied;
using base::kExitFailed;
using base::kExitInfeasible;
using base::kExitNoRoom;
using base::kExitNoSuch;
using base::kExitNotFound;
using base::kExitOk;
using base::kExitTimeout;
using base::kExitUsage;

enum class Format { kText, kJson };

class Output {
 public:
  explicit Output(Format format) : format_(format) {}
  // Sends everything to `everything`: --watch draws it as one block.
  Output(Format format, std::function<void(std::string_view)> everything)
      : format_(format), everything_(std::move(everything)) {}

  bool json() const { return format_ == Format::kJson; }

  // Writes a document or a table to stdout; adds a newline. After a failed write, which is
  // remembered, nothing more is written.
  void data(std::string text) const;
  // data() for bytes as they are.
  void bytes(std::string_view bytes) const;
  // Whether a write to stdout failed.
  bool failed() const { return write_error_ != 0; }
  // The exit code of the program: lost output is a failure, and is reported. A reader that stops
  // early (mete ps | head) is not.
  int finish(int exit_code) const;
  // One line of talk to stderr: "mete: ...".
  void say(std::string_view text) const;
  // say() as a function, for code that does not know Output. Must not outlive this object.
  std::function<void(std::string_view)> talk() const {
    return [this](std::string_view text) { say(text); };
  }
  // Writes a line to stderr as it is (JSON).
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
  mutable int write_error_ = 0;  // errno of stdout
};

// Whether `fd` is a terminal that understands more than lines; whether it may have colours.
bool is_terminal(int fd);
bool wants_colour(int fd);

// Whether the reader of our stdout has left: a pipe shows that before the next write would.
bool nobody_reads();

// Value of -o: "text" or "json".
Result<Format> parse_format(std::string_view text);

// The current time in the form of documents: "2026-11-15T05:50:43.123Z".
std::string timestamp();

}  // namespace mete::cli
