// SPDX-License-Identifier: Apache-2.0
// See model_field.h. Two loops: feed_text() inside a string, which takes eight bytes at a time
// where nothing of it is kept, and structure() for each byte between strings and numbers. Keys of
// the outermost object and the model are kept, with their escapes undone; all other strings are
// skipped.
#include "proxy/model_field.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace mete::proxy {

namespace {

constexpr std::size_t kMostKept = 512;  // of a key; a longer one is not "model"

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Bytes of numbers, true, false and null.
constexpr std::array<bool, 256> make_literal_table() {
  std::array<bool, 256> table{};
  for (const char c : std::string_view("0123456789abcdefghijklmnopqrstuvwxyz-+.E"))
    table[static_cast<unsigned char>(c)] = true;
  return table;
}
constexpr std::array<bool, 256> kLiteral = make_literal_table();
bool is_literal(char c) { return kLiteral[static_cast<unsigned char>(c)]; }

// Whether one of eight bytes is a quote or a backslash.
bool has_mark(const char* at) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kHighs = 0x8080808080808080;
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, at, sizeof bytes);
  const std::uint64_t quote = bytes ^ (kOnes * '"');
  const std::uint64_t slash = bytes ^ (kOnes * '\\');
  return ((((quote - kOnes) & ~quote) | ((slash - kOnes) & ~slash)) & kHighs) != 0;
}

bool is_model_in_another_case(std::string_view key) {
  constexpr std::string_view kModel = "model";
  return key.size() == kModel.size() && std::equal(key.begin(), key.end(), kModel.begin(),
                                                   [](char a, char b) { return (a | 0x20) == b; });
}

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void ModelField::feed(std::string_view bytes) {
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  while (at != end && !failed()) {
    if (text_ != Text::kNone) {
      at = feed_text(at, end);
      continue;
    }
    if (state_ == State::kLiteral) {
      while (at != end && is_literal(*at)) ++at;
      if (at == end) return;
      end_value();
    }
    structure(*at++);
  }
}

const char* ModelField::feed_text(const char* at, const char* end) {
  if (!escape_.empty()) return feed_escape(at, end);
  const char* const begin = at;
  while (end - at >= 8 && !has_mark(at)) at += 8;
  while (at != end && *at != '"' && *at != '\\') ++at;
  if (text_ != Text::kSkipped && at != begin) keep({begin, static_cast<std::size_t>(at - begin)});
  if (at == end) return at;
  if (*at == '"')
    end_text();
  else
    escape_ = '\\';
  return at + 1;
}

const char* ModelField::feed_escape(const char* at, const char* end) {
  while (at != end) {
    escape_ += *at++;
    const char kind = escape_[1];
    if (kind == 'u' && escape_.size() < 6) {
      if (escape_.size() > 2 && hex(escape_.back()) < 0) return fail("a text has a wrong \\u"), at;
      continue;
    }
    if (kind == 'u') {
      std::uint32_t code = 0;
      for (std::size_t i = 2; i < 6; ++i) {
        const int digit = hex(escape_[i]);
        if (digit < 0) return fail("a text has a wrong \\u"), at;
        code = code * 16 + static_cast<std::uint32_t>(digit);
      }
      keep_code(code);
    } else {
      constexpr std::string_view kNames = "\"\\/bfnrt";
      constexpr std::string_view kBytes = "\"\\/\b\f\n\r\t";
      const std::size_t known = kNames.find(kind);
      if (known == std::string_view::npos) return fail("a text has a wrong escape"), at;
      keep(kBytes.substr(known, 1));
    }
    escape_.clear();
    return at;
  }
  return at;
}

void ModelField::begin_text(Text text) {
  text_ = text;
  kept_.clear();
  surrogate_ = 0;
}

void ModelField::end_text() {
  const Text text = text_;
  text_ = Text::kNone;
  if (text == Text::kKey) {
    is_model_ = kept_ == "model";
    // Some readers ignore the case of keys.
    if (!is_model_ && is_model_in_another_case(kept_))
      return fail("there is a key " + kept_ + ": write model");
    if (is_model_ && has_model_) return fail("there are two keys model");
    state_ = State::kColon;
    return;
  }
  if (text == Text::kModel) {
    if (kept_.empty()) return fail("model is empty");
    model_ = kept_;
    has_model_ = true;
    is_model_ = false;
  }
  if (text == Text::kSkipped && state_ == State::kKey)
    state_ = State::kColon;
  else
    end_value();
}

// An unpaired half of a character stays a mark that no name of a model has.
void ModelField::keep(std::string_view bytes) {
  if (text_ == Text::kSkipped) return;
  if (surrogate_ != 0) {
    surrogate_ = 0;
    kept_ += "\xef\xbf\xbd";
  }
  const std::size_t most = text_ == Text::kModel ? kMaxModel : kMostKept;
  if (kept_.size() + bytes.size() <= most)
    kept_ += bytes;
  else if (text_ == Text::kModel)
    fail("model has more than " + std::to_string(kMaxModel) + " bytes");
  else
    text_ = Text::kSkipped;  // state_ says that it is a key
}

void ModelField::keep_code(std::uint32_t code) {
  if (text_ == Text::kSkipped) return;
  if (code >= 0xd800 && code < 0xdc00) {
    if (surrogate_ != 0) keep("");
    surrogate_ = code;
    return;
  }
  if (code >= 0xdc00 && code < 0xe000) {
    if (surrogate_ == 0) return keep("\xef\xbf\xbd");
    code = 0x10000 + ((surrogate_ - 0xd800) << 10) + (code - 0xdc00);
    surrogate_ = 0;
  }
  std::array<char, 4> bytes{};
  std::size_t size = 0;
  const auto put = [&](std::uint32_t byte) { bytes[size++] = static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | (code >> 6));
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3f));
    put(0x80 | ((code >> 6) & 0x3f));
    put(0x80 | (code & 0x3f));
  }
  keep({bytes.data(), size});
}

void ModelField::structure(char c) {
  if (is_space(c)) return;
  switch (state_) {
    case State::kStart:
      if (c == '{') return open(true);
      return fail("the body is no JSON object");
    case State::kValue:
      // "[]" and "[1,]" look alike here: the replica tells them apart.
      if (c == ']' && !objects_.back()) return close(false);
      return begin_value(c);
    case State::kFirstKey:
      if (c == '}') return close(true);
      [[fallthrough]];
    case State::kKey:
      state_ = State::kKey;
      if (c == '"') return begin_text(objects_.size() == 1 ? Text::kKey : Text::kSkipped);
      return fail("a key is missing in the JSON of the body");
    case State::kColon:
      state_ = State::kValue;
      if (c == ':') return;
      return fail("a colon is missing in the JSON of the body");
    case State::kAfterValue:
      if (c == ',') {
        state_ = objects_.back() ? State::kKey : State::kValue;
        return;
      }
      if (c == '}' || c == ']') return close(c == '}');
      return fail("a comma is missing in the JSON of the body");
    case State::kLiteral:
    case State::kEnd:
      return fail("text follows the JSON of the body");
  }
}

void ModelField::begin_value(char c) {
  if (is_model_ && c != '"') return fail("model is no text");
  if (c == '"') return begin_text(is_model_ ? Text::kModel : Text::kSkipped);
  if (c == '{' || c == '[') return open(c == '{');
  if (!is_literal(c)) return fail("a value is missing in the JSON of the body");
  state_ = State::kLiteral;
}

void ModelField::open(bool object) {
  if (objects_.size() == kMaxDepth) return fail("the JSON of the body is nested too deeply");
  objects_.push_back(object);
  state_ = object ? State::kFirstKey : State::kValue;
}

void ModelField::close(bool object) {
  if (objects_.back() != object) return fail("brackets do not match in the JSON of the body");
  objects_.pop_back();
  end_value();
}

void ModelField::end_value() { state_ = objects_.empty() ? State::kEnd : State::kAfterValue; }

Result<std::string> ModelField::model() const {
  std::string why = wrong_;
  if (why.empty() && state_ == State::kStart) why = "the body is empty";
  if (why.empty() && state_ != State::kEnd) why = "the JSON of the body ends too early";
  if (why.empty() && !has_model_) why = "the body has no model";
  if (why.empty()) return model_;
  return Error::invalid(why).with_hint("send a JSON object with \"model\": \"NAME\"");
}

}  // namespace mete::proxy
