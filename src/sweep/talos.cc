// SPDX-License-Identifier: Apache-2.0
// See space_file.h. Lexer turns the text into tokens, TalosReader reads literals from them by
// recursive descent (nesting of kMaxDepth) and turns each literal into a parameter at once.
//
// Tuples: "As a range of values (min, max, steps); max is excluded (this example gives 12 and 30)",
// for (12, 48, 2): https://github.com/autonomio/talos, docs/Scan.md, Supported input formats. There
// are `steps` values, min + i * (max - min) / steps. If min and max are ints, the values are cut to
// ints towards zero, each one once (talos/parameters/ParamSpace.py). Here ints are exact, and other
// values are rounded to 15 digits, so that (0.1, 0.5, 4) has 0.3 and not 0.30000000000000004.
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <variant>

#include "base/text.h"
#include "sweep/python_lexer.h"
#include "sweep/space_file.h"
#include "sweep/space_parts.h"

namespace mete::sweep {

namespace {

using core::sweep::Parameter;
using core::sweep::Value;

constexpr int kMaxDepth = 64;
constexpr std::string_view kReads = "mete reads texts in quotes, numbers, True, False and None";

struct Literal {
  enum class Kind { kValue, kList, kTuple } kind = Kind::kValue;
  Value value = {};
  std::vector<Literal> parts = {};
  std::size_t line = 1;
};

bool is_number(const Literal& literal) {
  return literal.kind == Literal::Kind::kValue &&
         (literal.value.kind == Value::Kind::kInteger || literal.value.kind == Value::Kind::kReal);
}

// An int of Python that fits.
std::optional<std::int64_t> whole_of(const Literal& literal) {
  const std::string& text = literal.value.text;
  std::int64_t whole = 0;
  if (!is_number(literal) || literal.value.kind != Value::Kind::kInteger) return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return whole;
}

std::vector<Value> whole_steps(std::int64_t min, std::int64_t max, std::int64_t steps) {
  std::vector<Value> values;
  std::optional<std::int64_t> last;
  const __int128 width = static_cast<__int128>(max) - min;
  for (std::int64_t i = 0; i < steps; ++i) {
    const auto whole = static_cast<std::int64_t>(
        (static_cast<__int128>(min) * steps + width * static_cast<__int128>(i)) / steps);
    if (last == whole) continue;
    values.push_back(core::sweep::of_integer(whole));
    last = whole;
  }
  return values;
}

double rounded(double value) {
  char text[40];
  const auto end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::general, 15).ptr;
  std::from_chars(text, end, value);
  return value;
}

class TalosReader {
 public:
  TalosReader(std::string_view text, SpaceLines lines)
      : lines_(std::move(lines)), lexer_(text, lines_) {}

  Result<SpaceFile> read() {
    if (Result<void> began = begin(); !began) return std::move(began).error();
    lines_.params = token_.line;
    if (!is("{"))
      return wrong("a dictionary belongs here").with_hint("write p = {'lr': [0.1, 0.01]}");
    if (Result<void> read = read_dictionary(); !read) return std::move(read).error();
    while (is(";"))
      if (Result<void> next = advance(); !next) return std::move(next).error();
    if (token_.kind != Token::Kind::kEnd)
      return wrong("nothing belongs behind the dictionary").with_hint("a file has one space");
    if (file_.params.empty())
      return lines_.at(lines_.params, "the dictionary is empty")
          .with_hint("write p = {'lr': [0.1, 0.01]}");
    if (Result<void> checked = check_space(file_, lines_); !checked)
      return std::move(checked).error();
    return std::move(file_);
  }

 private:
  bool is(std::string_view symbol) const {
    return token_.kind == Token::Kind::kSymbol && token_.text == symbol;
  }
  Error wrong(const std::string& what) const {
    const std::string here =
        token_.kind == Token::Kind::kEnd ? "the file ends" : "there is " + base::quote(token_.text);
    return lines_.at(token_.line, what).with_evidence(here);
  }
  Result<void> advance() {
    Result<Token> token = lexer_.next();
    if (!token) return std::move(token).error();
    token_ = *std::move(token);
    return {};
  }
  Result<void> expect(std::string_view symbol, const std::string& what) {
    if (!is(symbol)) return wrong(what);
    return advance();
  }

  // The first token, and `p =`.
  Result<void> begin() {
    if (Result<void> next = advance(); !next) return next;
    if (token_.kind != Token::Kind::kName) return {};
    const Error other = wrong("a dictionary belongs here")
                            .with_hint("the file has one dictionary, p = {'lr': [0.1, 0.01]}");
    if (Result<void> next = advance(); !next) return next;
    if (!is("=")) return other;
    return advance();
  }

  Result<void> read_dictionary() {
    if (Result<void> next = advance(); !next) return next;
    while (!is("}")) {
      if (Result<void> read = read_entry(); !read) return read;
      if (is("}")) break;
      if (Result<void> next = expect(",", "a comma or } belongs here"); !next) return next;
    }
    return advance();
  }

  Result<void> read_entry() {
    if (token_.kind != Token::Kind::kText)
      return wrong("the name of a parameter belongs here").with_hint("write 'lr': [0.1, 0.01]");
    if (file_.params.size() == core::sweep::kMaxParameters)
      return wrong("the space has too many parameters")
          .with_hint("it has at most " + std::to_string(core::sweep::kMaxParameters));
    Parameter parameter{token_.text, {}};
    const std::size_t line = token_.line;
    if (!names_.insert(parameter.name).second)
      return lines_.at(line, base::quote(parameter.name) + " is there twice")
          .with_hint("say it once");
    if (Result<void> next = advance(); !next) return next;
    if (Result<void> next = expect(":", "a : belongs here"); !next) return next;
    Result<Literal> literal = read_literal();
    if (!literal) return std::move(literal).error();
    Result<std::vector<Value>> values = values_of(parameter.name, *std::move(literal));
    if (!values) return std::move(values).error();
    parameter.domain = *std::move(values);
    file_.params.push_back(std::move(parameter));
    lines_.of.push_back(line);
    return {};
  }

  Result<Literal> read_literal() {
    if (is("[") || is("(")) return read_several();
    std::string sign;
    if (is("-") || is("+")) {
      sign = token_.text == "-" ? "-" : "";
      if (Result<void> next = advance(); !next) return std::move(next).error();
      if (token_.kind != Token::Kind::kNumber) return wrong("a number belongs here");
    }
    Literal literal{.line = token_.line};
    if (token_.kind == Token::Kind::kText) {
      literal.value = core::sweep::of_text(token_.text);
    } else if (token_.kind == Token::Kind::kNumber) {
      std::optional<Value> value = value_of_number(sign, token_.text);
      if (!value) return wrong("this number is not understood").with_hint(std::string(kReads));
      literal.value = *std::move(value);
    } else if (token_.kind == Token::Kind::kName) {
      if (token_.text == "True" || token_.text == "False")
        literal.value = core::sweep::of_bool(token_.text == "True");
      else if (token_.text == "None")
        literal.value = core::sweep::of_text("None");
      else
        return lines_.at(token_.line, base::quote(token_.text) + " is a name of Python, no value")
            .with_hint(std::string(kReads) + ": '" +
                       base::printable(token_.text.substr(token_.text.rfind('.') + 1)) + "'");
    } else {
      return wrong("a value belongs here").with_hint(std::string(kReads));
    }
    if (Result<void> next = advance(); !next) return std::move(next).error();
    return literal;
  }

  // A list, a tuple, or what is in parentheses.
  Result<Literal> read_several() {
    if (depth_ == kMaxDepth)
      return wrong("more than " + std::to_string(kMaxDepth) + " levels of nesting");
    ++depth_;
    Literal all{is("[") ? Literal::Kind::kList : Literal::Kind::kTuple};
    all.line = token_.line;
    const std::string end = is("[") ? "]" : ")";
    bool comma = false;
    if (Result<void> next = advance(); !next) return std::move(next).error();
    while (!is(end)) {
      if (all.parts.size() == core::sweep::kMaxValues)
        return wrong("there are too many values")
            .with_hint("a parameter has at most " + std::to_string(core::sweep::kMaxValues));
      Result<Literal> part = read_literal();
      if (!part) return part;
      all.parts.push_back(*std::move(part));
      if (is(end)) break;
      if (Result<void> next = expect(",", "a comma or " + end + " belongs here"); !next)
        return std::move(next).error();
      comma = true;
    }
    --depth_;
    if (Result<void> next = advance(); !next) return std::move(next).error();
    if (all.kind != Literal::Kind::kTuple || comma || all.parts.empty()) return all;
    Literal inside = std::move(all.parts.front());
    return inside;
  }

  Result<std::vector<Value>> values_of(const std::string& name, Literal literal) const {
    if (literal.kind == Literal::Kind::kTuple) return values_of_tuple(name, literal);
    std::vector<Value> values;
    if (literal.kind == Literal::Kind::kValue) values.push_back(std::move(literal.value));
    for (Literal& part : literal.parts) {
      if (part.kind != Literal::Kind::kValue)
        return lines_.at(part.line, "parameter " + base::quote(name) + ": a value is a list itself")
            .with_hint(std::string(kReads));
      values.push_back(std::move(part.value));
    }
    return values;
  }

  Result<std::vector<Value>> values_of_tuple(const std::string& name, const Literal& tuple) const {
    const auto wrong = [&](const std::string& what) {
      return lines_.at(tuple.line, "parameter " + base::quote(name) + ": " + what)
          .with_hint("a tuple is (min, max, number of values); several values are a list: [1, 2]");
    };
    const std::vector<Literal>& parts = tuple.parts;
    for (const Literal& part : parts)
      if (!is_number(part)) return wrong("a tuple has something that is no number");
    if (parts.size() != 3)
      return wrong("a tuple has three numbers, this one has " + std::to_string(parts.size()));
    const std::optional<std::int64_t> steps = whole_of(parts[2]);
    if (!steps || *steps < 1 || *steps > static_cast<std::int64_t>(core::sweep::kMaxValues))
      return wrong("the number of values is 1 to " + std::to_string(core::sweep::kMaxValues) +
                   ", not " + base::quote(parts[2].value.text));
    const double min = parts[0].value.number, max = parts[1].value.number;
    if (min == max) return wrong("the range has no width");
    if (min > max) return wrong("min is larger than max");
    const std::optional<std::int64_t> whole_min = whole_of(parts[0]),
                                      whole_max = whole_of(parts[1]);
    if (whole_min && whole_max) return whole_steps(*whole_min, *whole_max, *steps);
    std::vector<Value> values;
    for (std::int64_t i = 0; i < *steps; ++i) {
      const double share = static_cast<double>(i) / static_cast<double>(*steps);
      const double value = i == 0 ? min : rounded(min * (1 - share) + max * share);
      values.push_back(core::sweep::of_real(value));
    }
    return values;
  }

  SpaceLines lines_;
  Lexer lexer_;
  Token token_;
  int depth_ = 0;
  std::set<std::string> names_;
  SpaceFile file_;
};

}  // namespace

Result<SpaceFile> read_talos(std::string_view text, const std::string& path) {
  SpaceLines lines{path};
  if (text.size() > kMaxSpaceFile)
    return lines.at(1, "the file is too long")
        .with_evidence(std::to_string(text.size()) + " bytes; at most " +
                       std::to_string(kMaxSpaceFile));
  return TalosReader(text, std::move(lines)).read();
}

}  // namespace mete::sweep
