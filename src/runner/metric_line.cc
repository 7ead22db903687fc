// SPDX-License-Identifier: Apache-2.0
// See metric_line.h. LineCutter copies runs of plain bytes and handles control characters one by
// one; its state between two pieces is the line so far and the place within an escape sequence.
// ObjectScan is a small JSON reader, because it accepts NaN and Infinity, which JSON does not have.
// It does not recurse: nested values are skipped with a list of open brackets.
#include "runner/metric_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <system_error>
#include <utility>

#include "base/text.h"

namespace mete::runner {

namespace {

using core::sweep::Metric;

constexpr char kEscape = 0x1b;
constexpr char kBell = 0x07;
constexpr std::size_t kMaxDepth = 64;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_plain(char c) { return static_cast<unsigned char>(c) >= 0x20 ? c != 0x7f : c == '\t'; }

void append_utf8(std::string& out, unsigned code) {
  if (code >= 0xd800 && code < 0xe000) code = 0xfffd;  // half of a pair
  const auto put = [&](unsigned byte) { out += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xc0 | code >> 6);
  } else {
    if (code < 0x10000) {
      put(0xe0 | code >> 12);
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 0x3f));
    }
    put(0x80 | (code >> 6 & 0x3f));
  }
  put(0x80 | (code & 0x3f));
}

class ObjectScan {
 public:
  explicit ObjectScan(std::string_view text) : text_(text) {}

  std::optional<std::vector<Metric>> read() {
    std::vector<Metric> numbers;
    if (!next('{')) return std::nullopt;
    for (bool first = true; !next('}'); first = false) {
      if (!first && !next(',')) return std::nullopt;
      std::string name;
      std::optional<double> number;
      if (!text(&name) || !next(':') || !value(number)) return std::nullopt;
      if (number) numbers.push_back({std::move(name), *number});
    }
    space();
    return at_ == text_.size() ? std::optional(std::move(numbers)) : std::nullopt;
  }

 private:
  void space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  char peek() {
    space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool next(char c) {
    if (peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view expected) {
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }

  bool value(std::optional<double>& number) {
    switch (peek()) {
      case '"':
        return text_value(number);
      case '{':
      case '[':
        return skip_nested();
      case 't':
        number = 1;
        return word("true");
      case 'f':
        number = 0;
        return word("false");
      case 'n':
        return word("null");
      case 'N':
        number = kNaN;
        return word("NaN");
      case 'I':
        number = kNaN;
        return word("Infinity");
      default:
        return number_value(number);
    }
  }

  bool text_value(std::optional<double>& number) {
    std::string value;
    if (!text(&value)) return false;
    const std::optional<double> read = number_of(value);
    if (read && std::isnan(*read)) number = read;
    return true;
  }

  bool number_value(std::optional<double>& number) {
    if (word("-Infinity")) {
      number = kNaN;
      return true;
    }
    const std::size_t end = std::min(text_.find_first_not_of("+-.eE0123456789", at_), text_.size());
    const std::string_view digits = text_.substr(at_, end - at_);
    const std::size_t first = digits.starts_with('-') ? 1 : 0;
    if (first >= digits.size() || !is_digit(digits[first])) return false;
    number = number_of(digits);
    at_ = end;
    return number.has_value();
  }

  bool skip_nested() {
    std::string open;
    do {
      at_ = std::min(text_.find_first_of("\"{}[]", at_), text_.size());
      if (at_ == text_.size() || open.size() > kMaxDepth) return false;
      const char c = text_[at_];
      if (c == '"') {
        if (!text(nullptr)) return false;
        continue;
      }
      ++at_;
      if (c == '{' || c == '[') {
        open += c == '{' ? '}' : ']';
      } else {
        if (open.back() != c) return false;
        open.pop_back();
      }
    } while (!open.empty());
    return true;
  }

  // Text in quotes, at this place.
  bool text(std::string* out) {
    if (!next('"')) return false;
    for (;;) {
      const std::size_t end = std::min(text_.find_first_of("\"\\", at_), text_.size());
      if (out != nullptr) *out += text_.substr(at_, end - at_);
      at_ = end;
      if (at_ == text_.size()) return false;
      if (text_[at_++] == '"') return true;
      if (!escaped(out)) return false;
    }
  }

  // What follows a backslash.
  bool escaped(std::string* out) {
    if (at_ == text_.size()) return false;
    const char c = text_[at_++];
    if (c == 'u') {
      std::optional<unsigned> code = four_digits();
      if (!code) return false;
      if (*code >= 0xd800 && *code < 0xdc00 && text_.substr(at_).starts_with("\\u")) {
        at_ += 2;
        const std::optional<unsigned> low = four_digits();
        if (!low) return false;
        const bool pair = *low >= 0xdc00 && *low < 0xe000;
        code = pair ? 0x10000 + ((*code - 0xd800) << 10) + (*low - 0xdc00) : 0xfffd;
      }
      if (out != nullptr) append_utf8(*out, *code);
      return true;
    }
    constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    const std::size_t which = kLetters.find(c);
    if (which == std::string_view::npos) return false;
    if (out != nullptr) *out += kMeanings[which];
    return true;
  }

  std::optional<unsigned> four_digits() {
    if (text_.size() - at_ < 4) return std::nullopt;
    const char* const begin = text_.data() + at_;
    unsigned code = 0;
    const auto [end, error] = std::from_chars(begin, begin + 4, code, 16);
    if (error != std::errc() || end != begin + 4) return std::nullopt;
    at_ += 4;
    return code;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

// ---- lines -------------------------------------------------------------------------------------

void LineCutter::take(std::string_view bytes, const Each& each) {
  if (mode_ == Mode::kTerminal)
    take_terminal(bytes, each);
  else
    take_plain(bytes, each);
}

void LineCutter::end(const Each& each) {
  if (!line_.empty()) each(line_);
  drop_rest();
}

void LineCutter::drop_rest() {
  line_.clear();
  escape_ = Escape::kNone;
}

void LineCutter::append(std::string_view bytes) {
  line_ += bytes.substr(0, kMaxLine - line_.size());
}

void LineCutter::take_plain(std::string_view bytes, const Each& each) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    append(bytes.substr(0, end));
    if (end == std::string_view::npos) return;
    this->end(each);
    bytes.remove_prefix(end + 1);
  }
}

void LineCutter::take_terminal(std::string_view bytes, const Each& each) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    std::size_t end = at;
    if (escape_ == Escape::kNone)
      while (end < bytes.size() && is_plain(bytes[end])) ++end;
    append(bytes.substr(at, end - at));
    if (end < bytes.size()) control(bytes[end], each);
    at = end + 1;
  }
}

void LineCutter::control(char c, const Each& each) {
  if (c == '\n' || c == '\r') return end(each);
  if (c == kEscape) {
    escape_ = escape_ == Escape::kText ? Escape::kTextEnd : Escape::kBegun;
    return;
  }
  switch (escape_) {
    case Escape::kNone:
      return;  // left out
    case Escape::kTextEnd:
      if (c == '\\') break;
      [[fallthrough]];  // another sequence has begun
    case Escape::kBegun:
      if (c == '[')
        escape_ = Escape::kSequence;
      else if (std::string_view("]PX^_").find(c) != std::string_view::npos)
        escape_ = Escape::kText;
      else
        escape_ = c >= 0x20 && c <= 0x2f ? Escape::kBegun : Escape::kNone;
      return;
    case Escape::kSequence:
      if (c >= 0x40 && c <= 0x7e) break;
      return;
    case Escape::kText:
      if (c == kBell) break;
      return;
  }
  escape_ = Escape::kNone;
}

// ---- numbers -----------------------------------------------------------------------------------

std::optional<double> number_of(std::string_view text) {
  text = base::trim(text);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, value);
  if (last != end || error == std::errc::invalid_argument) return std::nullopt;
  // Too large or too small: from_chars() does not say which.
  if (error != std::errc()) value = std::strtod(std::string(text).c_str(), nullptr);
  return std::isfinite(value) ? value : kNaN;
}

std::optional<std::vector<Metric>> numbers_of_object(std::string_view line) {
  return ObjectScan(line).read();
}

}  // namespace mete::runner
