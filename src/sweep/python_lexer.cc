// SPDX-License-Identifier: Apache-2.0
// See python_lexer.h. A number token is the longest run that could be one; value_of_number() then
// says whether it is. Decimal numbers keep their text, without underscores.
#include "sweep/python_lexer.h"

#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

#include "base/text.h"

namespace mete::sweep {

namespace {

using core::sweep::Value;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_quote(char c) { return c == '"' || c == '\''; }

void append_utf8(std::string& out, std::uint32_t code) {
  const auto more = [&](int shift) { out += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | code >> 6);
    more(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | code >> 12);
    more(6);
    more(0);
  } else {
    out += static_cast<char>(0xf0 | code >> 18);
    more(12);
    more(6);
    more(0);
  }
}

// Whether the underscore at this place is between two digits, or behind 0x, 0o or 0b.
bool is_well_placed(std::string_view number, std::size_t at) {
  constexpr std::string_view kBases = "xXoObB";
  const bool based =
      number.size() > 2 && number[0] == '0' && kBases.find(number[1]) != std::string_view::npos;
  const auto is_digit_at = [&](std::size_t i) {
    return i < number.size() && (based ? is_hex(number[i]) : is_digit(number[i]));
  };
  return at > 0 && is_digit_at(at + 1) && (is_digit_at(at - 1) || (based && at == 2));
}

// 0x1f, 0o17, 0b11 without what is in front.
std::optional<Value> value_in_base(std::string_view sign, std::string_view digits, int base) {
  std::int64_t whole = 0;
  const std::string signed_digits = std::string(sign).append(digits);
  const char* const end = signed_digits.data() + signed_digits.size();
  const auto [last, error] = std::from_chars(signed_digits.data(), end, whole, base);
  if (error != std::errc() || last != end || digits.empty() || digits[0] == '-')
    return std::nullopt;
  return core::sweep::of_integer(whole);
}

}  // namespace

Lexer::Lexer(std::string_view text, const SpaceLines& lines) : text_(text), lines_(lines) {
  if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
}

void Lexer::skip() {
  while (!ended()) {
    const char c = peek();
    if (c == '#') {
      while (!ended() && peek() != '\n') ++at_;
    } else if (c == '\n' || c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      line_ += c == '\n' ? 1 : 0;
      ++at_;
    } else if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      ++at_;
    } else {
      return;
    }
  }
}

Result<Token> Lexer::next() {
  skip();
  if (ended()) return Token{Token::Kind::kEnd, "", line_};
  const char c = peek();
  if (is_quote(c)) return quoted(false);
  if (is_letter(c)) return name();
  if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
  ++at_;
  return Token{Token::Kind::kSymbol, std::string(1, c), line_};
}

Result<Token> Lexer::name() {
  const std::size_t begin = at_;
  while (is_letter(peek()) || is_digit(peek()) || peek() == '.') ++at_;
  Token token{Token::Kind::kName, std::string(text_.substr(begin, at_ - begin)), line_};
  if (!is_quote(peek())) return token;
  const std::string kind = base::to_lower(token.text);
  if (kind == "r" || kind == "u") return quoted(kind == "r");
  return lines_.at(line_, "a text of this kind is not read here: " + base::quote(token.text))
      .with_hint("write it as 'text'");
}

Result<Token> Lexer::number() {
  const std::size_t begin = at_;
  const bool decimal = peek() != '0' || (peek(1) != 'x' && peek(1) != 'X');
  while (is_letter(peek()) || is_digit(peek()) || peek() == '.') {
    const bool exponent = decimal && (peek() == 'e' || peek() == 'E');
    ++at_;
    if (exponent && (peek() == '+' || peek() == '-')) ++at_;
  }
  return Token{Token::Kind::kNumber, std::string(text_.substr(begin, at_ - begin)), line_};
}

Result<Token> Lexer::quoted(bool raw) {
  Token token{Token::Kind::kText, "", line_};
  const char quote = peek();
  if (peek(1) == quote && peek(2) == quote)
    return lines_.at(line_, "texts in triple quotes are not read here")
        .with_hint("write it as 'text'");
  ++at_;
  while (peek() != quote || ended()) {
    if (ended() || peek() == '\n')
      return lines_.at(token.line, "this text is not closed").with_hint("a quote is missing");
    if (peek() != '\\') {
      token.text += peek();
      ++at_;
    } else if (raw) {
      token.text += peek();
      ++at_;
      if (!ended() && peek() != '\n') token.text += text_[at_++];
    } else if (Result<void> read = escape(token.text); !read) {
      return std::move(read).error();
    }
  }
  ++at_;
  return token;
}

Result<void> Lexer::escape(std::string& out) {
  constexpr std::string_view kLetters = "\\'\"abfnrtv";
  constexpr std::string_view kMeant = "\\'\"\a\b\f\n\r\t\v";
  ++at_;  // the backslash
  if (ended()) return {};
  const char c = peek();
  if (const std::size_t found = kLetters.find(c); found != std::string_view::npos) {
    out += kMeant[found];
    ++at_;
  } else if (c == '\n' || (c == '\r' && peek(1) == '\n')) {
    at_ += c == '\n' ? 1 : 2;
    ++line_;
  } else if (c >= '0' && c <= '7') {
    std::uint32_t value = 0;
    for (int i = 0; i < 3 && peek() >= '0' && peek() <= '7'; ++i)
      value = value * 8 + static_cast<std::uint32_t>(text_[at_++] - '0');
    append_utf8(out, value);
  } else if (c == 'x' || c == 'u' || c == 'U') {
    ++at_;
    return code(out, c == 'x' ? 2 : c == 'u' ? 4 : 8);
  } else if (c == 'N') {
    return lines_.at(line_, "characters are not read by their name").with_hint("write it as \\u…");
  } else {
    out += '\\';  // as Python does
  }
  return {};
}

Result<void> Lexer::code(std::string& out, int digits) {
  std::uint32_t value = 0;
  const std::string_view text = text_.substr(at_, static_cast<std::size_t>(digits));
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + digits || value > 0x10ffff ||
      (value >= 0xd800 && value < 0xe000))
    return lines_
        .at(line_, "this escape means no character: " + base::quote("\\" + std::string(text)))
        .with_hint("a backslash itself is written \\\\");
  at_ += text.size();
  append_utf8(out, value);
  return {};
}

std::optional<Value> value_of_number(std::string_view sign, std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_')
      plain += text[i];
    else if (!is_well_placed(text, i))
      return std::nullopt;
  }
  if (plain.size() > 1 && plain[0] == '0') {
    const std::string_view digits = std::string_view(plain).substr(2);
    switch (plain[1]) {
      case 'x':
      case 'X':
        return value_in_base(sign, digits, 16);
      case 'o':
      case 'O':
        return value_in_base(sign, digits, 8);
      case 'b':
      case 'B':
        return value_in_base(sign, digits, 2);
      default:
        break;
    }
  }
  Value value = core::sweep::guess(std::string(sign) + plain);
  if (value.kind != Value::Kind::kInteger && value.kind != Value::Kind::kReal) return std::nullopt;
  return value;
}

}  // namespace mete::sweep
