// SPDX-License-Identifier: Apache-2.0
// See expression_tree.h. holds() gives the truth of a node, value() its number or text; each calls
// the other where it meets the other's kinds: (a < b) + 1 counts a true part as 1, and a number
// that is not zero is true. The arithmetic is that of doubles, of exact library functions (fmod)
// and of maths.h, so that it is equal on every machine.
#include "core/sweep/expression_tree.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "core/sweep/maths.h"

namespace mete::core::sweep {

namespace {

using Node = Expression::Node;

// x ** n for a whole n: squares of x are multiplied, in an order that is the same everywhere.
double whole_power(double x, double n) {
  double result = 1;
  for (auto left = static_cast<std::uint64_t>(n < 0 ? -n : n); left > 0; left /= 2) {
    if (left % 2 == 1) result *= x;
    if (left > 1) x *= x;
  }
  return n < 0 ? 1 / result : result;
}

double power(double x, double y) {
  constexpr double kWhole = 9007199254740992.0;  // 2^53; every larger double is whole, and even
  if (y >= -kWhole && y <= kWhole && y == static_cast<double>(static_cast<std::int64_t>(y)))
    return whole_power(x, y);
  if (x < 0) return std::nan("");
  if (x == 0) return y < 0 ? 1 / x : 0;
  return y == 0.5 ? root_of(x) : exp_of(y * log_of(x));
}

// As in Python: the result has the sign of b. fmod() is exact, and so equal on every machine.
double modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double apply(char op, double a, double b) {
  switch (op) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
      return a / b;
    default:
      return modulo(a, b);
  }
}

template <class T>
bool in_order(Node::Order order, const T& a, const T& b) {
  switch (order) {
    case Node::Order::kEqual:
      return a == b;
    case Node::Order::kNotEqual:
      return a != b;
    case Node::Order::kLess:
      return a < b;
    case Node::Order::kLessEqual:
      return a <= b;
    case Node::Order::kGreater:
      return a > b;
    case Node::Order::kGreaterEqual:
      return a >= b;
  }
  return false;
}

bool comparable(const Node::Operand& a, const Node::Operand& b) {
  return a.kind == b.kind && a.kind != Node::Operand::Kind::kNothing;
}

bool compare(Node::Order order, const Node::Operand& a, const Node::Operand& b) {
  if (!comparable(a, b)) return false;
  return a.kind == Node::Operand::Kind::kText ? in_order(order, a.text, b.text)
                                              : in_order(order, a.number, b.number);
}

}  // namespace

bool Expression::Node::is_listed(const ValueOf& value_of) const {
  const Operand wanted = parts.front()->value(value_of);
  bool found = false, similar = parts.size() == 1;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Operand one = parts[i]->value(value_of);
    similar = similar || comparable(wanted, one);
    found = found || compare(Order::kEqual, wanted, one);
  }
  if (kind == Kind::kIn) return found;
  return wanted.kind != Operand::Kind::kNothing && similar && !found;
}

bool Expression::Node::holds(const ValueOf& value_of) const {
  const auto is_true = [&](const Part& part) { return part->holds(value_of); };
  switch (kind) {
    case Kind::kAnd:
      return std::all_of(parts.begin(), parts.end(), is_true);
    case Kind::kOr:
      return std::any_of(parts.begin(), parts.end(), is_true);
    case Kind::kNot:
      return !is_true(parts.front());
    case Kind::kCompare:
      return compare(order, parts[0]->value(value_of), parts[1]->value(value_of));
    case Kind::kIn:
    case Kind::kNotIn:
      return is_listed(value_of);
    default: {
      const Operand one = value(value_of);
      return one.kind == Operand::Kind::kText ? !one.text.empty() : one.number != 0;
    }
  }
}

Expression::Node::Operand Expression::Node::chain(const ValueOf& value_of) const {
  Operand result = parts.front()->value(value_of);
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Operand right = parts[i]->value(value_of);
    if (result.kind != Operand::Kind::kNumber || right.kind != Operand::Kind::kNumber) return {};
    result = of_number(apply(operators[i - 1], result.number, right.number));
  }
  return result;
}

Expression::Node::Operand Expression::Node::value(const ValueOf& value_of) const {
  switch (kind) {
    case Kind::kNumber:
      return of_number(number);
    case Kind::kText:
      return {Operand::Kind::kText, 0, text};
    case Kind::kName: {
      std::optional<Value> found = value_of(text);
      if (!found) return {};
      if (found->kind != Value::Kind::kText) return of_number(found->number);
      return {Operand::Kind::kText, 0, std::move(found->text)};
    }
    case Kind::kSum:
    case Kind::kProduct:
      return chain(value_of);
    case Kind::kNegative: {
      const Operand one = parts.front()->value(value_of);
      return one.kind == Operand::Kind::kNumber ? of_number(-one.number) : Operand{};
    }
    case Kind::kPower: {
      const Operand base = parts[0]->value(value_of);
      const Operand exponent = parts[1]->value(value_of);
      if (base.kind != Operand::Kind::kNumber || exponent.kind != Operand::Kind::kNumber) return {};
      return of_number(power(base.number, exponent.number));
    }
    default:
      return of_number(holds(value_of) ? 1 : 0);
  }
}

void Expression::Node::add_names(std::vector<std::string>& names) const {
  if (kind == Kind::kName && std::find(names.begin(), names.end(), text) == names.end())
    names.push_back(text);
  for (const Part& part : parts) part->add_names(names);
}

}  // namespace mete::core::sweep
