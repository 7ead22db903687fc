// SPDX-License-Identifier: Apache-2.0
// Conditions over parameters: --keep, `when:`, --target. For example
//
//   bs * width <= 65536 and not (opt == "sgd" and lr > 0.1) or layers in [2, 4]
//
//   or    := and { "or" and }                  and := not { "and" not }
//   not   := "not" not | compare
//   compare := sum [ ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) sum | [ "not" ] "in" list ]
//   sum   := product { ( "+" | "-" ) product }   product := unary { ( "*" | "/" | "%" ) unary }
//   unary := "-" unary | power                 power := atom [ "**" unary ]
//   atom  := NUMBER | STRING | "true" | "false" | NAME | "(" or ")"
//   list  := "[" [ sum { "," sum } ] "]"
//
// Also && || ! True False, and strings in single or double quotes. A name is
// [A-Za-z_][A-Za-z0-9_-]*: a hyphen is part of a name only if such a name is known, otherwise it is
// a minus. A comparison with a parameter that is not in use, with a number that is not finite (a
// division by zero, NaN), or between a text and a number is false, also `!=`. `x not in [a, b]`
// needs an element that x can be compared with, and is false if x equals one. true is 1, false is
// 0; alone, a number is true unless it is 0, a text unless it is empty. Texts are ordered by bytes.
// % has the sign of its right side, as in Python. Text in, tree out; errors point at the character.
// Bounded: kMaxExpression characters, nesting of 64.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/sweep/value.h"

namespace mete::core::sweep {

inline constexpr std::size_t kMaxExpression = 2'000;  // characters

class Expression {
 public:
  // `names`: what may be used. invalid: `evidence` shows the text with a mark below the character
  // (as core::Query does); an unknown name suggests the nearest one.
  static Result<Expression> parse(std::string_view text, std::span<const std::string> names);
  const std::string& text() const { return text_; }
  // The names that it uses, each once, in the order of their first use.
  std::vector<std::string> names() const;
  // `value_of`: nullopt if the parameter is not in use.
  bool holds(const std::function<std::optional<Value>(std::string_view name)>& value_of) const;

  // By the text.
  bool operator==(const Expression& other) const { return text_ == other.text_; }

  struct Node;  // of the tree; expression.cc

 private:
  Expression(std::string text, std::shared_ptr<const Node> root)
      : text_(std::move(text)), root_(std::move(root)) {}
  std::string text_;
  std::shared_ptr<const Node> root_;
};

}  // namespace mete::core::sweep
