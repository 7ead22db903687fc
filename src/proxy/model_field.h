// SPDX-License-Identifier: Apache-2.0
// The `model` of a request to /v1/…: the string behind the key "model" of the JSON object that is
// its body. Takes the body piece by piece, in any pieces, and holds some bytes of it. Two readers
// of one body must not disagree on its model, so that keys are compared with their escapes undone,
// and a second `model` is refused. Of the rest, only the nesting is checked: the replica reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mete::proxy {

class ModelField {
 public:
  static constexpr std::size_t kMaxModel = 256;  // bytes
  static constexpr std::size_t kMaxDepth = 1000;

  // Nothing more is taken once failed().
  void feed(std::string_view bytes);
  bool failed() const { return !wrong_.empty(); }

  // After the whole body. invalid: no JSON object, no model, a second one, one that is no text.
  Result<std::string> model() const;

 private:
  enum class State { kStart, kValue, kFirstKey, kKey, kColon, kAfterValue, kLiteral, kEnd };
  enum class Text { kNone, kSkipped, kKey, kModel };

  const char* feed_text(const char* at, const char* end);
  const char* feed_escape(const char* at, const char* end);
  void begin_text(Text text);
  void end_text();
  void keep(std::string_view bytes);
  void keep_code(std::uint32_t code);
  void structure(char c);
  void begin_value(char c);
  void open(bool object);
  void close(bool object);
  void end_value();
  void fail(std::string why) {
    if (wrong_.empty()) wrong_ = std::move(why);
  }

  State state_ = State::kStart;
  Text text_ = Text::kNone;
  std::vector<bool> objects_;    // the open brackets: whether each is an object
  std::string kept_;             // of the key or the model that is being read
  std::string escape_;           // begun: "\", "\u00"
  std::uint32_t surrogate_ = 0;  // the first half of a character beyond U+FFFF
  bool is_model_ = false;        // the value of the key "model" is next
  bool has_model_ = false;
  std::string model_;
  std::string wrong_;
};

}  // namespace mete::proxy
