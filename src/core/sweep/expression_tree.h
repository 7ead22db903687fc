// SPDX-License-Identifier: Apache-2.0
// The tree of an Expression, which expression.cc reads from a text. Chains (a + b - c, a and b and
// c) are one node with many parts, so that the nesting in the text bounds the depth of the tree.
// Evaluation gives an Operand: a number, a text, or nothing. It is nothing if a parameter is not in
// use, if a number is not finite, and for arithmetic with a text; a comparison with nothing is
// false.
#pragma once

#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/sweep/expression.h"
#include "core/sweep/value.h"

namespace mete::core::sweep {

using ValueOf = std::function<std::optional<Value>(std::string_view name)>;

struct Expression::Node {
  enum class Kind {
    kNumber,
    kText,
    kName,
    kOr,
    kAnd,
    kNot,
    kCompare,
    kIn,
    kNotIn,
    kSum,
    kProduct,
    kNegative,
    kPower
  };
  enum class Order { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };
  struct Operand {
    enum class Kind { kNothing, kNumber, kText } kind = Kind::kNothing;
    double number = 0;
    std::string text = {};
  };
  using Part = std::shared_ptr<const Node>;

  Kind kind = Kind::kNumber;
  std::vector<Part> parts = {};  // of `in`: what is looked for, then the list
  std::string operators = {};    // of a sum, a product: "+-", "*/%", between two parts each
  Order order = Order::kEqual;   // of a comparison
  double number = 0;
  std::string text = {};  // of a text, a name

  bool holds(const ValueOf& value_of) const;
  Operand value(const ValueOf& value_of) const;
  bool is_listed(const ValueOf& value_of) const;
  Operand chain(const ValueOf& value_of) const;
  void add_names(std::vector<std::string>& names) const;

  static Operand of_number(double number) {
    if (!std::isfinite(number)) return {};
    return {Operand::Kind::kNumber, number};
  }
};

}  // namespace mete::core::sweep
