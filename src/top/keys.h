// SPDX-License-Identifier: Apache-2.0
// The bytes of a terminal, as keys. Bytes in, in pieces of any size, keys out; unknown sequences
// are dropped and never taken for something else.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mete::top {

struct Key {
  enum class Code {
    kText,  // a character
    kUp,
    kDown,
    kLeft,
    kRight,
    kPageUp,
    kPageDown,
    kHome,
    kEnd,
    kEnter,
    kEscape,
    kBackspace,
    kTab,
    kBackTab,
    kRedraw,     // Ctrl-L
    kClearLine,  // Ctrl-U
    kClick,
    kWheelUp,
    kWheelDown,
  };
  Code code = Code::kText;
  std::string text = {};  // of kText: one character of UTF-8
  std::size_t row = 0;    // of the mouse, from 0
  std::size_t column = 0;
  bool operator==(const Key&) const = default;
};

class KeyReader {
 public:
  std::vector<Key> read(std::string_view bytes);
  // Nothing more has arrived for a moment: a lone escape is the key.
  std::vector<Key> pause();
  bool waits() const { return !pending_.empty(); }

 private:
  std::string pending_;  // the beginning of a sequence
};

}  // namespace mete::top
