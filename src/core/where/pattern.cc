// SPDX-License-Identifier: Apache-2.0
// See pattern.h. A pattern is checked here and rewritten for RE2, which compiles and matches it.
// RE2 reads some patterns differently: its . matches \r, its \s does not match \v, `a{2` and
// `[a&&b]` are plain characters, and a** is an error. Rewriting gives each pattern one meaning, and
// errors a position. Sets are sets of bytes (Latin-1 for RE2), and . is rewritten as all bytes of
// one UTF-8 character.
#include "core/where/pattern.h"

#include <re2/re2.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"

namespace mete::core {

namespace {

// Room for about 20,000 steps, and as much again for the states of a match.
constexpr std::int64_t kMaxMemory = 2 << 20;
constexpr unsigned kMaxCount = 1'000;  // RE2 has this limit too, for nested counts multiplied
constexpr std::size_t kMaxDepth = 250;
constexpr std::size_t kMaxWritten = 256 << 10;  // of a rewritten pattern
constexpr std::string_view kAnyCharacter =
    R"((?:[\x00-\x09\x0b\x0c\x0e-\x7f]|[\xc0-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf][\x80-\xbf])"
    R"(|[\xf0-\xff][\x80-\xbf][\x80-\xbf][\x80-\xbf]))";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string byte(char c) {
  if (is_digit(c) || is_letter(c)) return {c};
  return "\\x" + base::to_hex({&c, 1});
}

class Translator {
 public:
  explicit Translator(std::string_view text) : text_(text) {}

  Result<std::string> translate() {
    constexpr std::size_t kNothing = std::string::npos;
    std::vector<std::size_t> open;  // where in out_ each open ( begins
    std::size_t last = kNothing;    // where in out_ the part begins that a count would repeat
    while (!ended()) {
      const char c = text_[at_];
      const std::size_t began = out_.size();
      Result<void> read;
      if (c == '*' || c == '+' || c == '?' || c == '{') {
        read = last != kNothing ? repetition(last) : wrong("there is nothing to repeat");
      } else if (c == '[') {
        read = bracket();
        last = began;
      } else if (c == ')') {
        if (open.empty()) return wrong("an unmatched )");
        last = open.back();
        open.pop_back();
        out_ += text_[at_++];
      } else if (c == '(') {
        if (open.size() >= kMaxDepth) return wrong("too many ( inside one another");
        open.push_back(began);
        last = kNothing;
        read = group();
      } else if (c == '|') {
        last = kNothing;
        out_ += text_[at_++];
      } else {
        read = single(c);
        last = began;
      }
      if (!read) return std::move(read).error();
    }
    if (!open.empty()) return wrong("a ) is missing");
    return out_;
  }
  std::size_t at() const { return std::min(at_, text_.size()); }

 private:
  static Error wrong(const std::string& what) { return Error::invalid(what); }
  bool ended() const { return at_ >= text_.size(); }
  bool next_is(std::string_view word) const { return text_.substr(at_).starts_with(word); }

  Result<void> group() {
    ++at_;
    if (next_is("?")) {
      if (!next_is("?:")) return wrong("only (?: is supported of what begins with (?");
      at_ += 2;
    }
    out_ += "(?:";
    return {};
  }

  Result<void> single(char c) {
    if (c == '\\') {
      const Result<Set> set = escaped();
      if (!set) return set.error();
      out_ += '[' + set->text + ']';
      return {};
    }
    ++at_;
    out_ += c == '^' ? "\\A" : c == '$' ? "\\z" : c == '.' ? std::string(kAnyCharacter) : byte(c);
    return {};
  }

  Result<void> repetition(std::size_t part) {
    std::string times(1, text_[at_++]);
    if (times == "{")
      if (Result<void> counted = counts(times); !counted) return counted;
    // "As few as possible" changes nothing: a value matches as a whole.
    if (next_is("?")) ++at_;
    if (next_is("+")) return wrong("possessive repetition is not supported");
    if (times.size() > 1 && out_.find('{', part) != std::string::npos) return unroll(part, times);
    out_.insert(part, "(?:");
    out_ += ')' + times;
    return {};
  }
  // RE2 allows nested counts up to 1,000 in total, so the outer count is written out.
  Result<void> unroll(std::size_t part, const std::string& times) {
    const std::string piece = "(?:" + out_.substr(part) + ")";
    const std::size_t comma = times.find(',');
    const std::uint64_t least =
        *base::parse_uint(times.substr(1, std::min(comma, times.size() - 1) - 1));
    const bool open_end = comma != std::string::npos && comma + 2 == times.size();
    const std::uint64_t most =
        comma == std::string::npos || open_end
            ? least
            : *base::parse_uint(times.substr(comma + 1, times.size() - comma - 2));
    if ((most + 1) * piece.size() > kMaxWritten) return wrong("the pattern is too large");
    out_.resize(part);
    out_ += "(?:";
    for (std::uint64_t i = 0; i < most; ++i) out_ += i < least ? piece : piece + "?";
    if (open_end) out_ += piece + "*";
    out_ += ")";
    return {};
  }
  Result<unsigned> number(std::string& times) {
    unsigned value = 0;
    if (ended() || !is_digit(text_[at_])) return wrong("a number belongs here");
    for (; !ended() && is_digit(text_[at_]); ++at_) {
      value = value * 10 + static_cast<unsigned>(text_[at_] - '0');
      if (value > kMaxCount) return wrong("at most " + std::to_string(kMaxCount) + " repetitions");
    }
    times += std::to_string(value);
    return value;
  }
  Result<void> counts(std::string& times) {
    const Result<unsigned> least = number(times);
    if (!least) return least.error();
    if (next_is(",")) {
      times += text_[at_++];
      if (!next_is("}")) {
        const Result<unsigned> most = number(times);
        if (!most) return most.error();
        if (*most < *least) return wrong("the larger number stands second");
      }
    }
    if (!next_is("}")) return wrong("a } is missing");
    times += text_[at_++];
    return {};
  }

  // Bytes, as written between [ and ].
  struct Set {
    std::string text;
    std::optional<char> only = {};  // a range may begin here
  };
  Result<Set> escaped() {
    ++at_;
    if (ended()) return wrong("nothing follows the \\");
    const char c = text_[at_];
    if (c == 's') return ++at_, Set{"\\x09-\\x0d\\x20"};
    if (c == 'S') return ++at_, Set{"\\x00-\\x08\\x0e-\\x1f\\x21-\\xff"};
    if (std::string_view("dDwWtnr").find(c) != std::string_view::npos)
      return ++at_, Set{std::string{'\\', c}};
    if (is_digit(c) || is_letter(c)) return wrong(std::string("\\") + c + " is not supported");
    ++at_;
    return Set{byte(c), c};
  }

  Result<void> bracket() {
    out_ += text_[at_++];
    if (next_is("^")) out_ += text_[at_++];
    for (bool first = true; !next_is("]") || first; first = false) {
      if (ended()) return wrong("a ] is missing");
      if (next_is("&&") || next_is("[")) return wrong("sets of sets are not supported");
      Result<Set> set = next_is("\\") ? escaped() : Set{byte(text_[at_]), text_[at_++]};
      if (!set) return std::move(set).error();
      out_ += set->text;
      if (!next_is("-") || at_ + 1 >= text_.size() || text_[at_ + 1] == ']') continue;
      if (Result<void> ranged = range(*set); !ranged) return ranged;
    }
    out_ += text_[at_++];
    return {};
  }
  // What follows the first byte of a range. A - after \d is a byte of the set. An escaped letter at
  // an end of a range is that letter: queries of that form are stored, and stay valid.
  Result<void> range(const Set& low) {
    const char last = text_[at_ - 1];
    if (!low.only && std::string_view("tnr").find(last) == std::string_view::npos) return {};
    ++at_;
    char high = text_[at_++];
    if (high == '\\' && !ended()) high = text_[at_++];
    if (static_cast<unsigned char>(high) < static_cast<unsigned char>(last))
      return wrong("the range ends before it begins");
    out_ += (low.only ? "-" : byte(last) + "-") + byte(high);
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

Result<Pattern> Pattern::parse(std::string_view text, std::size_t* at) {
  Translator translator(text);
  const Result<std::string> translated = translator.translate();
  if (at != nullptr) *at = translator.at();
  if (!translated) return translated.error();
  RE2::Options options(RE2::Latin1);
  options.set_log_errors(false);
  options.set_max_mem(kMaxMemory);
  Pattern pattern;
  pattern.compiled_ = std::make_shared<const RE2>(*translated, options);
  if (!pattern.compiled_->ok())
    return Error::invalid("the pattern is too large: " + pattern.compiled_->error());
  return pattern;
}

bool Pattern::matches(std::string_view value) const {
  return RE2::FullMatch(re2::StringPiece(value.data(), value.size()), *compiled_);
}

}  // namespace mete::core
