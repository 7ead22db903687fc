// SPDX-License-Identifier: Apache-2.0
// The words after a verb: a table of options in, values and the remaining words out. The same table
// makes --help and the shells' completions. Why not a library: the command of `mete cap` must reach
// the program untouched, so the end of our own options is decided here anyway, and errors have one
// shape.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace mete::cli {

struct OptionSpec {
  std::string_view name;             // "--gpu"
  std::string_view value = {};       // "SHARE": takes a value of that kind; "": a flag
  std::string_view help = {};        // one paragraph; --help wraps it
  std::string_view short_name = {};  // "-o"
  bool repeats = false;
  // Recognised, and refused with this text as evidence; not shown in --help.
  std::string_view not_built = {};
  // Recognised, and refused as an option of this verb ("mete submit"); not shown in --help.
  std::string_view other_verb = {};
  bool value_optional = false;  // "--watch", or "--watch=5"; never the next word
  // With value_optional: a next word of the form KEY=VALUE is the value ("--asha min=1,max=81").
  bool next_assigns = false;
  static constexpr OptionSpec later(std::string_view name, std::string_view value,
                                    std::string_view comes_with) {
    return {.name = name, .value = value, .not_built = comes_with};
  }
  bool offered() const { return not_built.empty() && other_verb.empty(); }
};

// What may follow the options.
enum class Rest {
  kNothing,
  kWords,    // plain words, options between them
  kCommand,  // the first word ends our options: the rest is a command. A first "--" is dropped.
};

class Parsed {
 public:
  bool has(std::string_view name) const { return find(name) != nullptr; }
  // The value of an option, or nullptr when it was not given.
  const std::string* find(std::string_view name) const;
  std::vector<std::string> all(std::string_view name) const;

  std::vector<std::pair<std::string_view, std::string>> options;  // by long name, as written
  std::vector<std::string> rest;
  bool dashes = false;  // what follows the options came after a "--"
};

// "--name value", "--name=value", "-o value", "-ovalue". An unknown option names the nearest; an
// option given twice, a missing value and a value for a flag are errors: nothing is guessed.
Result<Parsed> parse_options(std::span<const OptionSpec> specs,
                             const std::vector<std::string>& args, Rest rest);

}  // namespace mete::cli
