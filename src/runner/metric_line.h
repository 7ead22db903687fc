// SPDX-License-Identifier: Apache-2.0
// The text side of metrics: bytes in, lines and numbers out. The bytes come from any program, so
// every buffer here is bounded, and no content is an error. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/sweep/trial.h"

namespace mete::runner {

// Cuts a stream into lines that are not empty, whatever the sizes of the pieces it comes in. Only
// the first kMaxLine bytes of a line are kept.
class LineCutter {
 public:
  static constexpr std::size_t kMaxLine = 64 << 10;
  // kTerminal: output of a program. CR ends a line as LF does, since progress bars rewrite theirs;
  // escape sequences (ECMA-48) and other control characters except tabs are left out. A line end
  // ends an escape sequence that is not complete.
  enum class Mode { kTerminal, kPlain };
  using Each = std::function<void(std::string_view line)>;

  explicit LineCutter(Mode mode) : mode_(mode) {}

  void take(std::string_view bytes, const Each& each);
  // The stream has ended: its last line may lack the line end.
  void end(const Each& each);
  // The line so far that has no end yet; and forgets it.
  std::string_view rest() const { return line_; }
  void drop_rest();

 private:
  // Within an escape sequence: after ESC, in ESC [ ..., in a text such as a title, or after an ESC
  // in that text.
  enum class Escape { kNone, kBegun, kSequence, kText, kTextEnd };
  void take_terminal(std::string_view bytes, const Each& each);
  void take_plain(std::string_view bytes, const Each& each);
  void control(char c, const Each& each);
  void append(std::string_view bytes);

  Mode mode_;
  Escape escape_ = Escape::kNone;
  std::string line_;
};

// The text as a whole is a number: "0.41", "+1e-3", "5."; nan, inf and what is too large for a
// double are NaN. nullopt: it is no number.
std::optional<double> number_of(std::string_view text);

// The members of a JSON object that are numbers, in their order, duplicates included. true and
// false are 1 and 0; NaN, Infinity and -Infinity, bare as Python's json.dumps writes them or as
// text ("nan", "inf"), are NaN. Other texts, null, lists and objects are left out, and nothing
// inside the last two is checked but their brackets. nullopt: the line is no JSON object.
std::optional<std::vector<core::sweep::Metric>> numbers_of_object(std::string_view line);

}  // namespace mete::runner
