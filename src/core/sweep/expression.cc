// SPDX-License-Identifier: Apache-2.0
// See expression.h. ExpressionParser reads the text by recursive descent, one function for each
// line of the grammar, into a tree of Nodes (expression_tree.h evaluates it). nested() counts the
// constructs that recurse: parentheses, not, a minus before a value, and **. The first mistake ends
// the reading, with a mark below its character.
#include "core/sweep/expression.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

#include "base/mark.h"
#include "base/text.h"
#include "core/sweep/expression_tree.h"

namespace mete::core::sweep {

namespace {

using Node = Expression::Node;

class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, std::span<const std::string> names)
      : text_(text), names_(names) {
    for (const std::string& name : names)
      if (name.find('-') != std::string::npos) hyphened_.push_back(name);
  }

  Result<Node::Part> parse() {
    const std::size_t characters = characters_of(text_);
    if (characters > kMaxExpression || text_.size() > 4 * kMaxExpression)
      return Error::invalid("the expression is too long")
          .with_evidence(std::to_string(std::max(characters, text_.size() / 4)) +
                         " characters; at most " + std::to_string(kMaxExpression));
    Result<Node::Part> all = either();
    if (!all) return all;
    skip();
    if (!ended()) return wrong("'and', 'or' or the end belongs here");
    return all;
  }

 private:
  using Kind = Node::Kind;
  using Part = Node::Part;
  static constexpr int kMaxDepth = 64;

  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool begins_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  static bool is_name(char c) { return begins_name(c) || is_digit(c); }

  static std::size_t characters_of(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    }));
  }

  Error wrong(const std::string& what) const { return wrong_at(what, at_); }
  Error wrong_at(const std::string& what, std::size_t at) const {
    return Error::invalid("the expression is not understood: " + what + " (character " +
                          std::to_string(characters_of(text_.substr(0, at)) + 1) + ")")
        .with_evidence(base::marked(text_, at));
  }

  bool ended() const { return at_ >= text_.size(); }
  void skip() {
    while (!ended() && is_space(text_[at_])) ++at_;
  }
  bool is_known(std::string_view name) const {
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  }

  // The longest text here that could be a name, hyphens included.
  std::string_view run_here() const {
    if (ended() || !begins_name(text_[at_])) return {};
    std::size_t end = at_ + 1;
    while (end < text_.size() && (is_name(text_[end]) || text_[end] == '-')) ++end;
    return text_.substr(at_, end - at_);
  }
  // The name or keyword here: with hyphens only if such a name is known.
  std::string_view word_here() const {
    const std::string_view rest = text_.substr(at_);
    std::string_view word;
    for (const std::string_view name : hyphened_)
      if (name.size() > word.size() && rest.starts_with(name) &&
          (name.size() == rest.size() || !is_name(rest[name.size()])))
        word = name;
    if (!word.empty()) return word;
    if (rest.empty() || !begins_name(rest[0])) return {};
    std::size_t end = 1;
    while (end < rest.size() && is_name(rest[end])) ++end;
    return rest.substr(0, end);
  }
  bool take_word(std::string_view word) {
    skip();
    if (word_here() != word) return false;
    at_ += word.size();
    return true;
  }
  bool take(std::string_view symbol) {
    skip();
    if (!text_.substr(at_).starts_with(symbol)) return false;
    at_ += symbol.size();
    return true;
  }
  // Not the beginning of `longer`.
  bool take_short(char symbol, std::string_view longer) {
    skip();
    if (ended() || text_[at_] != symbol || text_.substr(at_).starts_with(longer)) return false;
    ++at_;
    return true;
  }
  std::optional<Node::Order> take_order() {
    constexpr std::array<std::pair<std::string_view, Node::Order>, 6> kOrders{
        {{"==", Node::Order::kEqual},
         {"!=", Node::Order::kNotEqual},
         {"<=", Node::Order::kLessEqual},
         {"<", Node::Order::kLess},
         {">=", Node::Order::kGreaterEqual},
         {">", Node::Order::kGreater}}};
    for (const auto& [symbol, order] : kOrders)
      if (take(symbol)) return order;
    return std::nullopt;
  }

  static Part make(Kind kind, std::vector<Part> parts) {
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->parts = std::move(parts);
    return node;
  }
  static Part number(double value) {
    auto node = std::make_shared<Node>();
    node->number = value;
    return node;
  }
  static Part word(Kind kind, std::string text) {
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->text = std::move(text);
    return node;
  }

  template <class Read>
  Result<Part> nested(Read read) {
    if (depth_ == kMaxDepth)
      return wrong("more than " + std::to_string(kMaxDepth) + " levels of nesting");
    ++depth_;
    Result<Part> part = read();
    --depth_;
    return part;
  }

  Result<Part> either() {
    std::vector<Part> parts;
    do {
      Result<Part> one = both();
      if (!one) return one;
      parts.push_back(*std::move(one));
    } while (take_word("or") || take("||"));
    return parts.size() == 1 ? parts.front() : make(Kind::kOr, std::move(parts));
  }
  Result<Part> both() {
    std::vector<Part> parts;
    do {
      Result<Part> one = single();
      if (!one) return one;
      parts.push_back(*std::move(one));
    } while (take_word("and") || take("&&"));
    return parts.size() == 1 ? parts.front() : make(Kind::kAnd, std::move(parts));
  }
  Result<Part> single() {
    if (!take_word("not") && !take_short('!', "!=")) return comparison();
    Result<Part> one = nested([this] { return single(); });
    if (!one) return one;
    return make(Kind::kNot, {*std::move(one)});
  }

  Result<Part> comparison() {
    Result<Part> left = sum();
    if (!left) return left;
    const bool negated = take_word("not");
    if (take_word("in")) return list(negated ? Kind::kNotIn : Kind::kIn, *std::move(left));
    if (negated) return wrong("'in' belongs here");
    const std::optional<Node::Order> order = take_order();
    if (take("=")) return wrong_at("= does not compare; write ==", at_ - 1);
    if (!order) return left;
    Result<Part> right = sum();
    if (!right) return right;
    skip();
    const std::size_t after = at_;
    if (take_order()) return wrong_at("a comparison has two sides; write a < b and b < c", after);
    auto node = std::make_shared<Node>();
    node->kind = Kind::kCompare;
    node->parts = {*std::move(left), *std::move(right)};
    node->order = *order;
    return Part(node);
  }
  Result<Part> list(Kind kind, Part left) {
    if (!take("[")) return wrong("a list like [1, 2] belongs here");
    std::vector<Part> parts{std::move(left)};
    if (take("]")) return make(kind, std::move(parts));
    do {
      Result<Part> one = sum();
      if (!one) return one;
      parts.push_back(*std::move(one));
    } while (take(","));
    if (!take("]")) return wrong("a , or ] belongs here");
    return make(kind, std::move(parts));
  }

  static Part chain(Kind kind, std::vector<Part> parts, std::string operators) {
    if (parts.size() == 1) return parts.front();
    auto node = std::make_shared<Node>();
    node->kind = kind;
    node->parts = std::move(parts);
    node->operators = std::move(operators);
    return node;
  }
  Result<Part> sum() {
    std::vector<Part> parts;
    std::string operators;
    for (;;) {
      Result<Part> one = product();
      if (!one) return one;
      parts.push_back(*std::move(one));
      if (take("+"))
        operators += '+';
      else if (take("-"))
        operators += '-';
      else
        return chain(Kind::kSum, std::move(parts), std::move(operators));
    }
  }
  Result<Part> product() {
    std::vector<Part> parts;
    std::string operators;
    for (;;) {
      Result<Part> one = unary();
      if (!one) return one;
      parts.push_back(*std::move(one));
      if (take("*"))
        operators += '*';
      else if (take("/"))
        operators += '/';
      else if (take("%"))
        operators += '%';
      else
        return chain(Kind::kProduct, std::move(parts), std::move(operators));
    }
  }
  Result<Part> unary() {
    if (!take("-")) return raised();
    Result<Part> one = nested([this] { return unary(); });
    if (!one) return one;
    return make(Kind::kNegative, {*std::move(one)});
  }
  Result<Part> raised() {
    Result<Part> base = atom();
    if (!base || !take("**")) return base;
    Result<Part> exponent = nested([this] { return unary(); });
    if (!exponent) return exponent;
    return make(Kind::kPower, {*std::move(base), *std::move(exponent)});
  }

  Result<Part> atom() {
    skip();
    if (ended()) return wrong("it ends where a value belongs");
    const char c = text_[at_];
    if (c == '(') return parenthesis();
    if (c == '"' || c == '\'') return quoted(c);
    if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1])))
      return literal();
    if (begins_name(c)) return name();
    return wrong("a value belongs here");
  }
  Result<Part> parenthesis() {
    const std::size_t began = at_++;
    Result<Part> inside = nested([this] { return either(); });
    if (!inside) return inside;
    if (take(")")) return inside;
    skip();
    return ended() ? wrong_at("this ( is not closed", began) : wrong("a ) belongs here");
  }
  Result<Part> quoted(char quote) {
    const std::size_t began = at_++;
    std::string value;
    for (; !ended() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size() &&
          (text_[at_ + 1] == quote || text_[at_ + 1] == '\\'))
        ++at_;
      value += text_[at_];
    }
    if (ended()) return wrong_at("this quote is not closed", began);
    ++at_;
    return word(Kind::kText, std::move(value));
  }
  Result<Part> literal() {
    double value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) return wrong("this number is out of range");
    const std::size_t after = at_ + static_cast<std::size_t>(end - begin);
    if (after < text_.size() && (is_name(text_[after]) || text_[after] == '.'))
      return wrong("this number is not understood");
    at_ = after;
    return number(value);
  }
  Result<Part> name() {
    const std::string_view here = word_here();
    const bool yes = here == "true" || here == "True";
    if (!yes && here != "false" && here != "False" && !is_known(here)) return unknown(here);
    at_ += here.size();
    if (is_known(here)) return word(Kind::kName, std::string(here));
    return number(yes ? 1 : 0);
  }
  Error unknown(std::string_view name) const {
    if (name == "and" || name == "or" || name == "not" || name == "in")
      return wrong("a value belongs here");
    const std::vector<std::string_view> names(names_.begin(), names_.end());
    const std::string_view run = run_here();
    std::string_view near = run.size() <= 256 ? base::nearest(run, names) : std::string_view();
    if (!near.empty()) name = run;
    if (near.empty() && name.size() <= 256) near = base::nearest(name, names);
    return wrong("there is no parameter " + base::quote(name))
        .with_hint(near.empty() ? "a text needs quotes, as in opt == \"adam\""
                                : "did you mean " + std::string(near) + "?");
  }

  std::string_view text_;
  std::span<const std::string> names_;
  std::vector<std::string_view> hyphened_;  // the names with a hyphen
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<Expression> Expression::parse(std::string_view text, std::span<const std::string> names) {
  Result<std::shared_ptr<const Node>> root = ExpressionParser(text, names).parse();
  if (!root) return std::move(root).error();
  return Expression(std::string(text), *std::move(root));
}

std::vector<std::string> Expression::names() const {
  std::vector<std::string> names;
  root_->add_names(names);
  return names;
}

bool Expression::holds(
    const std::function<std::optional<Value>(std::string_view name)>& value_of) const {
  return root_->holds(value_of);
}

}  // namespace mete::core::sweep
