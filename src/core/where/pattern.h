// SPDX-License-Identifier: Apache-2.0
// Regular expressions that match a whole value, in time proportional to the length of the value
// (RE2). Java's back references, look-around and modes are errors, as are sets of sets.
//
//   . [a-z] [^,] \d \w \s \D \W \S \. ab a|b (ab)* (?:ab)+ a? a{2} a{2,} a{2,5} ^ $
#pragma once

#include <memory>
#include <string_view>

#include "base/result.h"

namespace re2 {
class RE2;
}

namespace mete::core {

class Pattern {
 public:
  // invalid: the message says what is wrong; `at` (if given) is set to the byte where.
  static Result<Pattern> parse(std::string_view text, std::size_t* at = nullptr);
  bool matches(std::string_view value) const;

 private:
  std::shared_ptr<const re2::RE2> compiled_;
};

}  // namespace mete::core
