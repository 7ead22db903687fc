// SPDX-License-Identifier: Apache-2.0
// See query.h. Parser reads the text by recursive descent into a tree of Query::Node: and, or, not,
// and comparisons, whose arguments are checked and converted at once (understand). matches()
// evaluates the tree on a node's facts. may_match() computes for each part which results it can
// have (Can), given the ranges of varying attributes.
#include "core/where/query.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/bytes.h"
#include "base/mark.h"
#include "base/text.h"
#include "core/where/pattern.h"

namespace mete::core {

namespace {

enum class Operator {
  kEquals,
  kNotEquals,
  kGreater,
  kGreaterEqual,
  kLess,
  kLessEqual,
  kExists,
  kNotExists,
  kIn,
  kNotIn,
  kMatches,
  kNotMatches
};

struct OperatorName {
  std::string_view text;
  Operator is;
};
// Longer operators first, where one is a prefix of another.
constexpr std::array kOperators{
    OperatorName{"==", Operator::kEquals},
    OperatorName{"!=", Operator::kNotEquals},
    OperatorName{">=", Operator::kGreaterEqual},
    OperatorName{">", Operator::kGreater},
    OperatorName{"<=", Operator::kLessEqual},
    OperatorName{"<", Operator::kLess},
    OperatorName{"=~", Operator::kMatches},
    OperatorName{"!~", Operator::kNotMatches},
    OperatorName{"!exists", Operator::kNotExists},
    OperatorName{"!in", Operator::kNotIn},
    OperatorName{"equals", Operator::kEquals},
    OperatorName{"not_equals", Operator::kNotEquals},
    OperatorName{"greater_than_equal", Operator::kGreaterEqual},
    OperatorName{"greater_than", Operator::kGreater},
    OperatorName{"less_than_equal", Operator::kLessEqual},
    OperatorName{"less_than", Operator::kLess},
    OperatorName{"matches", Operator::kMatches},
    OperatorName{"not_matches", Operator::kNotMatches},
    OperatorName{"exists", Operator::kExists},
    OperatorName{"not_exists", Operator::kNotExists},
    OperatorName{"in", Operator::kIn},
    OperatorName{"not_in", Operator::kNotIn},
};

enum class Subject {
  kAttribute,
  kTaskGroup,
  kAgentConnected,
  kAgentVersion,
  kInstanceId,
  kRegisteredAt,
  kRunningTasks
};

bool is_order(Operator op) {
  return op == Operator::kGreater || op == Operator::kGreaterEqual || op == Operator::kLess ||
         op == Operator::kLessEqual;
}
bool is_existence(Operator op) { return op == Operator::kExists || op == Operator::kNotExists; }
bool is_list(Operator op) { return op == Operator::kIn || op == Operator::kNotIn; }
bool is_pattern(Operator op) { return op == Operator::kMatches || op == Operator::kNotMatches; }

bool has_operator(Subject subject, Operator op) {
  switch (subject) {
    case Subject::kAttribute:
      return true;
    case Subject::kTaskGroup:
      return !is_order(op);
    case Subject::kAgentConnected:
    case Subject::kInstanceId:
      return !is_order(op) && !is_existence(op);
    case Subject::kAgentVersion:
    case Subject::kRegisteredAt:
    case Subject::kRunningTasks:
      return !is_existence(op) && !is_list(op) && !is_pattern(op);
  }
  return false;
}

bool in_order(Operator op, int comparison) {
  switch (op) {
    case Operator::kEquals:
      return comparison == 0;
    case Operator::kNotEquals:
      return comparison != 0;
    case Operator::kGreater:
      return comparison > 0;
    case Operator::kGreaterEqual:
      return comparison >= 0;
    case Operator::kLess:
      return comparison < 0;
    case Operator::kLessEqual:
      return comparison <= 0;
    default:
      return false;
  }
}

template <class T>
int compare(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

// "16", "1.5", "16G", "24 GiB": the value of attributes that are amounts.
std::optional<double> amount(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(number))
    return number;
  if (const Result<Bytes> bytes = base::parse_bytes(text))
    return static_cast<double>(bytes->count());
  return std::nullopt;
}

// Attributes of mete that are amounts: 16G equals 16384M.
bool is_amount(std::string_view attribute) {
  return attribute == "gpu.memory" || attribute == "gpu.free";
}

int compare_values(const std::string& a, const std::string& b) {
  const std::optional<double> one = amount(a);
  const std::optional<double> other = amount(b);
  if (one && other) return compare(*one, *other);
  return compare(a, b);
}

// Which results a comparison can have.
struct Can {
  bool hold = false;
  bool fail = false;
};

}  // namespace

struct Query::Node {
  enum class Kind { kAnd, kOr, kNot, kCompare } kind = Kind::kCompare;
  std::vector<std::shared_ptr<const Node>> parts;
  Subject subject = Subject::kAttribute;
  std::string name;  // of an attribute
  Operator op = Operator::kEquals;
  std::vector<std::string> arguments;
  std::optional<Pattern> pattern;
  WallTime time;
  std::uint64_t number = 0;

  bool matches(const NodeFacts& node) const;
  Can can(const NodeFacts& node, std::span<const Varying> varying) const;
  Can can_within(const Varying& range) const;
  bool mentions(std::string_view attribute) const;
  bool compare_one(const std::string& value) const;
  bool compare_any(const std::vector<std::string>& values) const;
};

namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::shared_ptr<const Query::Node>> parse() {
    if (characters_of(text_) > kMaxQuery)
      return Error::invalid("the expression is too long")
          .with_evidence(std::to_string(characters_of(text_)) + " characters; at most " +
                         std::to_string(kMaxQuery));
    Result<Part> all = either();
    if (!all) return std::move(all).error();
    skip();
    if (!ended()) return wrong("'and', 'or' or the end belongs here");
    return *all;
  }

 private:
  using Part = std::shared_ptr<const Query::Node>;
  static constexpr int kMaxDepth = 250;

  static std::size_t characters_of(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    }));
  }
  Error wrong(const std::string& what) const { return wrong_at(what, at_); }
  Error wrong_at(const std::string& what, std::size_t at) const {
    return Error::invalid("the expression is not understood: " + what + " (character " +
                          std::to_string(characters_of(text_.substr(0, at)) + 1) + ")")
        .with_evidence(base::marked(text_, at))
        .with_hint("such as attribute:gpu.type == H200; man mete-where explains expressions");
  }

  bool ended() const { return at_ >= text_.size(); }
  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
  void skip() {
    while (!ended() && is_space(text_[at_])) ++at_;
  }
  // A keyword: not the beginning of a longer word.
  bool take_word(std::string_view word) {
    skip();
    if (!text_.substr(at_).starts_with(word)) return false;
    const std::size_t end = at_ + word.size();
    const bool letters = word.back() >= 'a' && word.back() <= 'z';
    if (letters && end < text_.size() && is_name(text_[end])) return false;
    at_ = end;
    return true;
  }
  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.' || c == ':' || c == '/' || c == '\\' ||
           static_cast<unsigned char>(c) >= 0x80;
  }

  static Part join(Query::Node::Kind kind, std::vector<Part> parts) {
    if (parts.size() == 1) return parts.front();
    auto node = std::make_shared<Query::Node>();
    node->kind = kind;
    node->parts = std::move(parts);
    return node;
  }

  Result<Part> either() {
    std::vector<Part> parts;
    do {
      Result<Part> one = both();
      if (!one) return one;
      parts.push_back(*std::move(one));
    } while (take_word("or") || take_word("||"));
    return join(Query::Node::Kind::kOr, std::move(parts));
  }
  Result<Part> both() {
    std::vector<Part> parts;
    do {
      Result<Part> one = single();
      if (!one) return one;
      parts.push_back(*std::move(one));
    } while (take_word("and") || take_word("&&"));
    return join(Query::Node::Kind::kAnd, std::move(parts));
  }
  Result<Part> single() {
    if (++depth_ > kMaxDepth) return wrong("too much inside one another");
    Result<Part> part = inner();
    --depth_;
    return part;
  }
  Result<Part> inner() {
    if (take_word("not") || take_word("!")) {
      Result<Part> one = single();
      if (!one) return one;
      auto node = std::make_shared<Query::Node>();
      node->kind = Query::Node::Kind::kNot;
      node->parts = {*std::move(one)};
      return Part(node);
    }
    if (take_word("(")) {
      Result<Part> one = either();
      if (!one) return one;
      if (!take_word(")")) return wrong("a ) belongs here");
      return one;
    }
    return comparison();
  }

  Result<Part> comparison() {
    skip();
    const std::size_t began = at_;
    while (!ended() && is_name(text_[at_])) ++at_;
    const std::string_view name = text_.substr(began, at_ - began);
    if (name.empty())
      return wrong(ended() ? "it ends where a comparison belongs" : "a subject belongs here");
    auto node = std::make_shared<Query::Node>();
    if (!find_subject(name, *node)) {
      return wrong_at("there is no subject '" + std::string(name) +
                          "' (attribute:NAME, task:group, agentConnected, agentVersion, "
                          "ec2InstanceId, registeredAt, runningTasksCount)",
                      began);
    }
    skip();
    const std::size_t at_operator = at_;
    if (!find_operator(*node)) return wrong("an operator belongs here");
    if (!has_operator(node->subject, node->op))
      return wrong_at(std::string(name) + " has no such operator", at_operator);
    if (is_existence(node->op)) return Part(node);
    skip();
    arguments_at_.clear();
    Result<void> read = is_list(node->op) ? list(*node) : argument(*node);
    if (!read) return std::move(read).error();
    if (Result<void> understood = understand(*node); !understood)
      return std::move(understood).error();
    return Part(node);
  }

  static bool find_subject(std::string_view name, Query::Node& node) {
    constexpr std::string_view kAttribute = "attribute:";
    if (name.starts_with(kAttribute)) {
      node.name = name.substr(kAttribute.size());
      return !node.name.empty();
    }
    constexpr std::array<std::pair<std::string_view, Subject>, 6> kNames{
        {{"task:group", Subject::kTaskGroup},
         {"agentConnected", Subject::kAgentConnected},
         {"agentVersion", Subject::kAgentVersion},
         {"ec2InstanceId", Subject::kInstanceId},
         {"registeredAt", Subject::kRegisteredAt},
         {"runningTasksCount", Subject::kRunningTasks}}};
    for (const auto& [text, subject] : kNames) {
      if (text != name) continue;
      node.subject = subject;
      return true;
    }
    return false;
  }
  bool find_operator(Query::Node& node) {
    for (const OperatorName& one : kOperators) {
      if (!take_word(one.text)) continue;
      node.op = one.is;
      return true;
    }
    return false;
  }

  Result<void> list(Query::Node& node) {
    if (!take_word("[")) return wrong("a list like [a, b] belongs here");
    do {
      skip();
      if (Result<void> one = argument(node); !one) return one;
      skip();
    } while (take_word(","));
    if (!take_word("]")) return wrong("a , or ] belongs here");
    return {};
  }

  Result<void> argument(Query::Node& node) {
    if (ended()) return wrong("a value belongs here");
    arguments_at_.push_back(at_);
    const char quote = text_[at_];
    if (quote == '"' || quote == '\'') return quoted(node, quote);
    const std::size_t began = at_;
    for (int depth = 0; !ended(); ++at_) {
      const char c = text_[at_];
      const std::string_view rest = text_.substr(at_);
      if (depth == 0 && (is_space(c) || c == ')' || rest.starts_with("&&") ||
                         rest.starts_with("||") || (is_list(node.op) && (c == ',' || c == ']'))))
        break;
      if (c == '"' || c == '\'') return wrong("a quote inside a value; put all of it in quotes");
      // Only patterns may contain parentheses.
      if (c == '(' && !is_pattern(node.op)) return wrong("a ( in a value; put it in quotes");
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    }
    if (at_ == began) return wrong("a value belongs here");
    node.arguments.emplace_back(text_.substr(began, at_ - began));
    return {};
  }
  Result<void> quoted(Query::Node& node, char quote) {
    const std::size_t began = at_++;
    std::string value;
    for (; !ended() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size() &&
          (text_[at_ + 1] == quote || (text_[at_ + 1] == '\\' && !is_pattern(node.op))))
        ++at_;
      value += text_[at_];
    }
    if (ended()) return wrong_at("this quote is not closed", began);
    ++at_;
    node.arguments.push_back(std::move(value));
    return {};
  }

  // The position of a character of the first argument; in quotes some follow a backslash.
  std::size_t place_of(std::size_t inside) const {
    std::size_t at = arguments_at_.front();
    const char quote = text_[at];
    if (quote != '"' && quote != '\'') return std::min(at + inside, at_);
    for (++at; inside > 0; --inside, ++at)
      if (text_.substr(at).starts_with(std::string{'\\', quote})) ++at;
    return std::min(at, at_);
  }

  Result<void> understand(Query::Node& node) {
    const std::string& value = node.arguments.front();
    if (is_pattern(node.op)) {
      std::size_t inside = 0;
      Result<Pattern> pattern = Pattern::parse(value, &inside);
      if (!pattern) return wrong_at(pattern.error().message, place_of(inside));
      node.pattern = *std::move(pattern);
      return {};
    }
    if (node.subject == Subject::kRegisteredAt) {
      const std::optional<WallTime> time = parse_registered_at(value);
      if (!time)
        return wrong_at("a time like 2018-06-18T22:28:28Z or 2018-06-18 belongs here",
                        arguments_at_.front());
      node.time = *time;
    }
    if (node.subject == Subject::kRunningTasks) {
      const auto [end, error] =
          std::from_chars(value.data(), value.data() + value.size(), node.number);
      if (error != std::errc() || end != value.data() + value.size())
        return wrong_at("a number belongs here", arguments_at_.front());
    }
    if (node.subject == Subject::kAgentConnected)
      for (std::size_t i = 0; i < node.arguments.size(); ++i)
        if (node.arguments[i] != "true" && node.arguments[i] != "false")
          return wrong_at("true or false belongs here", arguments_at_[i]);
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<std::size_t> arguments_at_;  // of the present comparison
  int depth_ = 0;
};

}  // namespace

bool Query::Node::compare_one(const std::string& value) const {
  const auto is_value = [&](const std::string& argument) {
    return value == argument ||
           (is_amount(name) && amount(argument) && amount(argument) == amount(value));
  };
  switch (op) {
    case Operator::kEquals:
    case Operator::kIn:
      return std::any_of(arguments.begin(), arguments.end(), is_value);
    case Operator::kNotEquals:
    case Operator::kNotIn:
      return std::none_of(arguments.begin(), arguments.end(), is_value);
    case Operator::kMatches:
      return pattern->matches(value);
    case Operator::kNotMatches:
      return !pattern->matches(value);
    default:
      return in_order(op, compare_values(value, arguments.front()));
  }
}

bool Query::Node::compare_any(const std::vector<std::string>& values) const {
  return std::any_of(values.begin(), values.end(),
                     [&](const std::string& value) { return compare_one(value); });
}

bool Query::Node::matches(const NodeFacts& node) const {
  const auto holds = [&](const std::shared_ptr<const Node>& part) { return part->matches(node); };
  if (kind == Kind::kAnd) return std::all_of(parts.begin(), parts.end(), holds);
  if (kind == Kind::kOr) return std::any_of(parts.begin(), parts.end(), holds);
  if (kind == Kind::kNot) return !holds(parts.front());
  switch (subject) {
    case Subject::kAttribute: {
      const auto found = node.attributes.find(name);
      if (is_existence(op)) return (found != node.attributes.end()) == (op == Operator::kExists);
      if (found == node.attributes.end()) return false;
      // An attribute without a value differs from every value.
      if (found->second.empty())
        return op == Operator::kNotEquals || op == Operator::kNotIn || op == Operator::kNotMatches;
      return compare_any(found->second);
    }
    case Subject::kTaskGroup:
      if (is_existence(op)) return node.task_groups.empty() == (op == Operator::kNotExists);
      return compare_any(node.task_groups);
    case Subject::kAgentConnected:
      return node.agent_connected && compare_one(*node.agent_connected ? "true" : "false");
    case Subject::kAgentVersion:
      return node.agent_version &&
             in_order(op, compare_versions(*node.agent_version, arguments.front()));
    case Subject::kInstanceId:
      return node.ec2_instance_id && compare_one(*node.ec2_instance_id);
    case Subject::kRegisteredAt:
      return node.registered_at && in_order(op, compare(node.registered_at->ms, time.ms));
    case Subject::kRunningTasks:
      return node.running_tasks && in_order(op, compare(*node.running_tasks, number));
  }
  return false;
}

// The order of amounts is decided at the ends of the range, that of text cannot be; equality is
// decided by whether the value is in the range.
Can Query::Node::can_within(const Varying& range) const {
  if (is_pattern(op) || (is_order(op) && !amount(arguments.front()))) return {true, true};
  const bool at_least = compare_one(std::to_string(range.least));
  const bool at_most = compare_one(std::to_string(range.most));
  if (is_order(op)) return {at_least || at_most, !at_least || !at_most};
  const bool inside =
      std::any_of(arguments.begin(), arguments.end(), [&range](const std::string& argument) {
        const std::optional<double> value = amount(argument);
        return value && *value >= static_cast<double>(range.least) &&
               *value <= static_cast<double>(range.most);
      });
  const bool wants = op == Operator::kEquals || op == Operator::kIn;
  return {inside || !wants, inside || wants};
}

Can Query::Node::can(const NodeFacts& node, std::span<const Varying> varying) const {
  if (kind == Kind::kNot) {
    const Can part = parts.front()->can(node, varying);
    return {part.fail, part.hold};
  }
  if (kind != Kind::kCompare) {
    Can all{kind == Kind::kAnd, kind == Kind::kOr};
    for (const std::shared_ptr<const Node>& part : parts) {
      const Can one = part->can(node, varying);
      all.hold = kind == Kind::kAnd ? all.hold && one.hold : all.hold || one.hold;
      all.fail = kind == Kind::kAnd ? all.fail || one.fail : all.fail && one.fail;
    }
    return all;
  }
  if (subject == Subject::kAttribute && !is_existence(op))
    for (const Varying& range : varying)
      if (range.attribute == name) return can_within(range);
  if (subject == Subject::kRunningTasks) {
    const bool none = in_order(op, compare(std::uint64_t{0}, number));
    const bool many = in_order(op, compare(UINT64_MAX, number));
    if (is_order(op)) return {none || many, !none || !many};
    return {true, true};
  }
  const bool now = matches(node);
  return {now, !now};
}

bool Query::Node::mentions(std::string_view attribute) const {
  if (kind == Kind::kCompare) return subject == Subject::kAttribute && name == attribute;
  return std::any_of(parts.begin(), parts.end(),
                     [&](const auto& part) { return part->mentions(attribute); });
}

Result<Query> Query::parse(std::string_view text) {
  Result<std::shared_ptr<const Node>> root = Parser(text).parse();
  if (!root) return std::move(root).error();
  return Query(std::string(text), *std::move(root));
}

bool Query::matches(const NodeFacts& node) const { return root_->matches(node); }
bool Query::may_match(const NodeFacts& node, std::span<const Varying> varying) const {
  return root_->can(node, varying).hold;
}
bool Query::mentions(std::string_view attribute) const { return root_->mentions(attribute); }

}  // namespace mete::core
