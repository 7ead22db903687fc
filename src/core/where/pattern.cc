// SPDX-License-Identifier: Apache-2.0
// See pattern.h. The text becomes a tree, the tree a list of steps, and a value is matched by
// walking all ways through the steps at once, byte by byte.
#include "core/where/pattern.h"

#include <memory>
#include <optional>

namespace mete::core {

namespace {

constexpr std::size_t kMaxSteps = 20'000;  // {100}{100} must not become a million
constexpr unsigned kMaxCount = 1'000;
constexpr int kMaxDepth = 250;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

// Builds the steps from behind: each part is made knowing what follows it.
class PatternParser {
 public:
  PatternParser(std::string_view text, Pattern& pattern) : text_(text), pattern_(pattern) {}

  Result<void> parse() {
    Result<Node*> all = alternatives(0);
    if (!all) return std::move(all).error();
    if (at_ < text_.size()) return wrong("an unmatched )");
    pattern_.steps_.push_back({});  // kDone
    Result<std::uint32_t> first = emit(**all, 0);
    if (!first) return std::move(first).error();
    pattern_.first_ = *first;
    return {};
  }
  std::size_t at() const { return at_; }

 private:
  struct Node {
    enum class Kind { kEmpty, kSet, kBegin, kEnd, kList, kOr, kRepeat } kind = Kind::kEmpty;
    Pattern::Bytes set;
    std::vector<Node*> parts;
    unsigned least = 0;
    std::optional<unsigned> most;
  };
  using Bytes = Pattern::Bytes;

  Node* make(Node node) {
    nodes_.push_back(std::make_unique<Node>(std::move(node)));
    return nodes_.back().get();
  }
  static Error wrong(const std::string& what) { return Error::invalid(what); }
  bool ended() const { return at_ >= text_.size(); }
  bool next_is(std::string_view word) const { return text_.substr(at_).starts_with(word); }

  Result<Node*> alternatives(int depth) {
    if (depth > kMaxDepth) return wrong("too many ( inside one another");
    std::vector<Node*> ways;
    for (;;) {
      Node list{};
      list.kind = Node::Kind::kList;
      while (!ended() && text_[at_] != '|' && text_[at_] != ')') {
        Result<Node*> one = repeated(depth);
        if (!one) return one;
        list.parts.push_back(*one);
      }
      ways.push_back(make(std::move(list)));
      if (ended() || text_[at_] != '|') break;
      ++at_;
    }
    if (ways.size() == 1) return ways.front();
    Node all{};
    all.kind = Node::Kind::kOr;
    all.parts = std::move(ways);
    return make(std::move(all));
  }

  Result<Node*> repeated(int depth) {
    Result<Node*> one = single(depth);
    while (one && !ended()) {
      Node more{};
      more.kind = Node::Kind::kRepeat;
      const char c = text_[at_];
      if (c == '*') {
        ++at_;
      } else if (c == '+') {
        more.least = 1;
        ++at_;
      } else if (c == '?') {
        more.most = 1;
        ++at_;
      } else if (c == '{') {
        if (Result<void> counted = counts(more); !counted) return std::move(counted).error();
      } else {
        break;
      }
      // "as few as possible": the same where a whole value is matched. "never give back" is not.
      if (!ended() && text_[at_] == '?') ++at_;
      if (!ended() && text_[at_] == '+') return wrong("possessive repetition is not supported");
      more.parts = {*one};
      one = make(std::move(more));
    }
    return one;
  }

  Result<unsigned> number() {
    unsigned value = 0;
    if (ended() || !is_digit(text_[at_])) return wrong("a number belongs here");
    for (; !ended() && is_digit(text_[at_]); ++at_) {
      value = value * 10 + static_cast<unsigned>(text_[at_] - '0');
      if (value > kMaxCount) return wrong("at most " + std::to_string(kMaxCount) + " repetitions");
    }
    return value;
  }
  Result<void> counts(Node& more) {
    ++at_;
    const Result<unsigned> least = number();
    if (!least) return least.error();
    more.least = *least;
    more.most = *least;
    if (next_is(",")) {
      ++at_;
      more.most.reset();
      if (!next_is("}")) {
        const Result<unsigned> most = number();
        if (!most) return most.error();
        if (*most < *least) return wrong("the larger number stands second");
        more.most = *most;
      }
    }
    if (!next_is("}")) return wrong("a } is missing");
    ++at_;
    return {};
  }

  Result<Node*> single(int depth) {
    Node node{};
    const char c = text_[at_];
    switch (c) {
      case '(':
        return group(depth);
      case '[':
        return bracket();
      case '*':
      case '+':
      case '?':
      case '{':
        return wrong("there is nothing to repeat");
      case '^':
      case '$':
        ++at_;
        node.kind = c == '^' ? Node::Kind::kBegin : Node::Kind::kEnd;
        return make(std::move(node));
      case '.': {
        ++at_;
        return any();
      }
      case '\\': {
        const Result<Bytes> set = escaped();
        if (!set) return set.error();
        node.kind = Node::Kind::kSet;
        node.set = *set;
        return make(std::move(node));
      }
      default:
        ++at_;
        node.kind = Node::Kind::kSet;
        node.set.set(static_cast<unsigned char>(c));
        return make(std::move(node));
    }
  }

  Result<Node*> group(int depth) {
    ++at_;
    if (next_is("?")) {
      if (!next_is("?:")) return wrong("only (?: is supported of what begins with (?");
      at_ += 2;
    }
    Result<Node*> inner = alternatives(depth + 1);
    if (!inner) return inner;
    if (ended()) return wrong("a ) is missing");
    ++at_;
    return inner;
  }

  // One character: a byte of ASCII but line ends, or all bytes of a longer one.
  Node* any() {
    const auto range = [&](int low, int high) {
      Node node{};
      node.kind = Node::Kind::kSet;
      for (int c = low; c <= high; ++c)
        if (c != '\n' && c != '\r') node.set.set(static_cast<std::size_t>(c));
      return make(std::move(node));
    };
    Node ways{};
    ways.kind = Node::Kind::kOr;
    ways.parts.push_back(range(0, 0x7f));
    for (const auto& [low, high, more] :
         {std::array{0xc0, 0xdf, 1}, std::array{0xe0, 0xef, 2}, std::array{0xf0, 0xff, 3}}) {
      Node list{};
      list.kind = Node::Kind::kList;
      list.parts.push_back(range(low, high));
      for (int i = 0; i < more; ++i) list.parts.push_back(range(0x80, 0xbf));
      ways.parts.push_back(make(std::move(list)));
    }
    return make(std::move(ways));
  }

  static void add(Bytes& set, char low, char high) {
    for (int c = static_cast<unsigned char>(low); c <= static_cast<unsigned char>(high); ++c)
      set.set(static_cast<std::size_t>(c));
  }

  Result<Bytes> escaped() {
    ++at_;
    if (ended()) return wrong("nothing follows the \\");
    const char c = text_[at_++];
    Bytes set;
    switch (c) {
      case 'd':
      case 'D':
        add(set, '0', '9');
        break;
      case 'w':
      case 'W':
        add(set, '0', '9');
        add(set, 'a', 'z');
        add(set, 'A', 'Z');
        set.set('_');
        break;
      case 's':
      case 'S':
        for (const char space : {' ', '\t', '\n', '\r', '\f', '\v'})
          set.set(static_cast<unsigned char>(space));
        break;
      case 't':
        set.set('\t');
        break;
      case 'n':
        set.set('\n');
        break;
      case 'r':
        set.set('\r');
        break;
      default:
        if (is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
          --at_;
          return wrong(std::string("\\") + c + " is not supported");
        }
        set.set(static_cast<unsigned char>(c));
    }
    if (c == 'D' || c == 'W' || c == 'S') set.flip();
    return set;
  }

  Result<Node*> bracket() {
    ++at_;
    Node node{};
    node.kind = Node::Kind::kSet;
    const bool without = next_is("^");
    if (without) ++at_;
    for (bool first = true; ended() || text_[at_] != ']' || first; first = false) {
      if (ended()) return wrong("a ] is missing");
      if (next_is("&&") || next_is("[")) return wrong("sets of sets are not supported");
      Bytes one;
      char low = text_[at_];
      if (low == '\\') {
        Result<Bytes> set = escaped();
        if (!set) return std::move(set).error();
        one = *set;
        low = text_[at_ - 1];
      } else {
        one.set(static_cast<unsigned char>(low));
        ++at_;
      }
      if (one.count() == 1 && next_is("-") && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        char high = text_[at_++];
        if (high == '\\' && !ended()) high = text_[at_++];
        if (static_cast<unsigned char>(high) < static_cast<unsigned char>(low))
          return wrong("the range ends before it begins");
        add(one, low, high);
      }
      node.set |= one;
    }
    ++at_;
    if (without) node.set.flip();
    return make(std::move(node));
  }

  // ---- steps ----

  Result<std::uint32_t> step(Pattern::Step step) {
    if (pattern_.steps_.size() >= kMaxSteps) return wrong("the pattern is too large");
    pattern_.steps_.push_back(step);
    return static_cast<std::uint32_t>(pattern_.steps_.size() - 1);
  }
  std::uint16_t set_of(const Bytes& set) {
    for (std::size_t i = 0; i < pattern_.sets_.size(); ++i)
      if (pattern_.sets_[i] == set) return static_cast<std::uint16_t>(i);
    pattern_.sets_.push_back(set);
    return static_cast<std::uint16_t>(pattern_.sets_.size() - 1);
  }

  // The first step of a part that goes on at `next`.
  Result<std::uint32_t> emit(const Node& node, std::uint32_t next) {
    using Kind = Pattern::Step::Kind;
    switch (node.kind) {
      case Node::Kind::kEmpty:
        return next;
      case Node::Kind::kSet:
        return step({Kind::kByte, set_of(node.set), next, 0});
      case Node::Kind::kBegin:
        return step({Kind::kBegin, 0, next, 0});
      case Node::Kind::kEnd:
        return step({Kind::kEnd, 0, next, 0});
      case Node::Kind::kList: {
        Result<std::uint32_t> first = next;
        for (auto part = node.parts.rbegin(); first && part != node.parts.rend(); ++part)
          first = emit(**part, *first);
        return first;
      }
      case Node::Kind::kOr: {
        Result<std::uint32_t> first = emit(*node.parts.back(), next);
        for (auto part = node.parts.rbegin() + 1; first && part != node.parts.rend(); ++part) {
          const Result<std::uint32_t> one = emit(**part, next);
          if (!one) return one;
          first = step({Kind::kSplit, 0, *one, *first});
        }
        return first;
      }
      case Node::Kind::kRepeat:
        return emit_repeat(node, next);
    }
    return next;
  }

  Result<std::uint32_t> emit_repeat(const Node& node, std::uint32_t next) {
    using Kind = Pattern::Step::Kind;
    const Node& part = *node.parts.front();
    Result<std::uint32_t> first = next;
    if (!node.most) {
      Result<std::uint32_t> loop = step({Kind::kSplit, 0, 0, next});
      if (!loop) return loop;
      const Result<std::uint32_t> body = emit(part, *loop);
      if (!body) return body;
      pattern_.steps_[*loop].next = *body;
      first = loop;
    } else {
      for (unsigned i = node.least; first && i < *node.most; ++i) {
        const Result<std::uint32_t> body = emit(part, *first);
        if (!body) return body;
        first = step({Kind::kSplit, 0, *body, next});
      }
    }
    for (unsigned i = 0; first && i < node.least; ++i) first = emit(part, *first);
    return first;
  }

  std::string_view text_;
  Pattern& pattern_;
  std::size_t at_ = 0;
  std::vector<std::unique_ptr<Node>> nodes_;
};

Result<Pattern> Pattern::parse(std::string_view text, std::size_t* at) {
  Pattern pattern;
  PatternParser parser(text, pattern);
  Result<void> parsed = parser.parse();
  if (at != nullptr) *at = std::min(parser.at(), text.size());
  if (!parsed) return std::move(parsed).error();
  return pattern;
}

bool Pattern::matches(std::string_view value) const {
  // The steps that may come next, each once.
  std::vector<std::uint32_t> now;
  std::vector<std::uint32_t> later;
  std::vector<std::uint32_t> open;
  std::vector<std::size_t> seen(steps_.size(), ~std::size_t{0});
  const auto reach = [&](std::uint32_t from, std::size_t at, std::vector<std::uint32_t>& into) {
    open.assign(1, from);
    while (!open.empty()) {
      const std::uint32_t one = open.back();
      open.pop_back();
      if (seen[one] == at) continue;
      seen[one] = at;
      const Step& step = steps_[one];
      if (step.kind == Step::Kind::kSplit) {
        open.push_back(step.other);
        open.push_back(step.next);
      } else if (step.kind == Step::Kind::kBegin || step.kind == Step::Kind::kEnd) {
        if (at == (step.kind == Step::Kind::kBegin ? 0 : value.size())) open.push_back(step.next);
      } else {
        into.push_back(one);
      }
    }
  };
  reach(first_, 0, now);
  for (std::size_t at = 0; at < value.size() && !now.empty(); ++at) {
    later.clear();
    const auto byte = static_cast<unsigned char>(value[at]);
    for (const std::uint32_t one : now) {
      const Step& step = steps_[one];
      if (step.kind == Step::Kind::kByte && sets_[step.set][byte]) reach(step.next, at + 1, later);
    }
    now.swap(later);
  }
  for (const std::uint32_t one : now)
    if (steps_[one].kind == Step::Kind::kDone) return true;
  return false;
}

}  // namespace mete::core
