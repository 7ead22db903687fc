// SPDX-License-Identifier: Apache-2.0
// The tokens of Python literals: texts with their escapes resolved, numbers, names (dots included),
// and single characters. Blanks, ends of lines and comments are between tokens.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/sweep/value.h"
#include "sweep/space_parts.h"

namespace mete::sweep {

struct Token {
  enum class Kind { kEnd, kText, kNumber, kName, kSymbol } kind = Kind::kEnd;
  std::string text;
  std::size_t line = 1;  // of its first character
};

class Lexer {
 public:
  // Text and lines must outlive the lexer.
  Lexer(std::string_view text, const SpaceLines& lines);
  // After the end: kEnd. invalid, with the line: a text that is not closed, of another kind (bytes,
  // f-strings, triple quotes), or with an escape that means nothing.
  Result<Token> next();

 private:
  void skip();
  bool ended() const { return at_ >= text_.size(); }
  char peek(std::size_t after = 0) const {
    return at_ + after < text_.size() ? text_[at_ + after] : '\0';
  }
  Result<Token> name();
  Result<Token> number();
  Result<Token> quoted(bool raw);
  Result<void> escape(std::string& out);
  Result<void> code(std::string& out, int digits);

  std::string_view text_;
  const SpaceLines& lines_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

// "-", "1_000": what Python's number is as a value; hexadecimal, octal and binary ones are decimal.
// nullopt: no number (1j, 007, 1__0), or too large.
std::optional<core::sweep::Value> value_of_number(std::string_view sign, std::string_view text);

}  // namespace mete::sweep
