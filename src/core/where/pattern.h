// SPDX-License-Identifier: Apache-2.0
// Regular expressions that match a whole value, in time proportional to its length times the
// pattern's: no pattern, however mean, can hold up whoever asks. What Java's have and this has not
// (references back, looking ahead or behind, modes) is an error that says so.
//
//   . [a-z] [^,] \d \w \s \D \W \S \. ab a|b (ab)* (?:ab)+ a? a{2} a{2,} a{2,5} ^ $
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mete::core {

class Pattern {
 public:
  // invalid: the message says what is wrong; `at` (if given) is set to the byte where.
  static Result<Pattern> parse(std::string_view text, std::size_t* at = nullptr);
  bool matches(std::string_view value) const;

 private:
  friend class PatternParser;
  struct Step {
    enum class Kind : std::uint8_t { kByte, kSplit, kBegin, kEnd, kDone };
    Kind kind = Kind::kDone;
    std::uint16_t set = 0;  // of kByte: which bytes
    std::uint32_t next = 0;
    std::uint32_t other = 0;  // of kSplit
  };
  using Bytes = std::bitset<256>;

  std::vector<Step> steps_;
  std::vector<Bytes> sets_;
  std::uint32_t first_ = 0;
};

}  // namespace mete::core
