// SPDX-License-Identifier: Apache-2.0
// See keys.h. Sequences: ESC [ ... final, ESC O final, and for the mouse ESC [ < button ; x ; y M.
// Bytes collect in pending_ until they are a whole sequence or character; an unknown sequence is
// dropped as a whole. A lone ESC becomes a key only after a pause.
#include "top/keys.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/columns.h"
#include "base/text.h"

namespace mete::top {

namespace {

using Code = Key::Code;
constexpr char kEscape = '\033';
constexpr std::size_t kLongest = 64;  // of a sequence; a longer one is none

// How many bytes at the beginning are one CSI sequence; 0: it is incomplete.
std::size_t csi_size(std::string_view text) {
  for (std::size_t i = 2; i < text.size(); ++i)
    if (text[i] >= 0x40 && text[i] <= 0x7e) return i + 1;
  return 0;
}

std::optional<Key> mouse_key(std::string_view parameters, char final) {
  const std::vector<std::string_view> parts = base::split(parameters, ';');
  if (parts.size() != 3) return std::nullopt;
  std::array<std::size_t, 3> numbers{};
  for (std::size_t i = 0; i < 3; ++i) {
    const Result<std::uint64_t> number = base::parse_uint(parts[i]);
    if (!number || *number > 100'000) return std::nullopt;
    numbers[i] = *number;
  }
  constexpr std::size_t kModifiers = 4 | 8 | 16;
  const std::size_t button = numbers[0] & ~kModifiers;
  if (numbers[1] == 0 || numbers[2] == 0) return std::nullopt;
  Key key{Code::kClick, {}, numbers[2] - 1, numbers[1] - 1};
  if (button == 64) key.code = Code::kWheelUp;
  if (button == 65) key.code = Code::kWheelDown;
  const bool click = button == 0 && final == 'M';
  return click || button == 64 || button == 65 ? std::optional(key) : std::nullopt;
}

std::optional<Key> csi_key(std::string_view sequence) {
  const char final = sequence.back();
  const std::string_view parameters = sequence.substr(2, sequence.size() - 3);
  if (parameters.starts_with('<')) return mouse_key(parameters.substr(1), final);
  // A second number says which of Shift, Alt and Control were held: the key does not change.
  const std::string_view number = parameters.substr(0, parameters.find(';'));
  const auto key = [](Code code) { return std::optional(Key{code, {}, 0, 0}); };
  switch (final) {
    case 'A':
      return key(Code::kUp);
    case 'B':
      return key(Code::kDown);
    case 'C':
      return key(Code::kRight);
    case 'D':
      return key(Code::kLeft);
    case 'H':
      return key(Code::kHome);
    case 'F':
      return key(Code::kEnd);
    case 'Z':
      return key(Code::kBackTab);
    case '~':
      if (number == "1" || number == "7") return key(Code::kHome);
      if (number == "4" || number == "8") return key(Code::kEnd);
      if (number == "5") return key(Code::kPageUp);
      if (number == "6") return key(Code::kPageDown);
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<Key> control_key(char c) {
  switch (c) {
    case '\r':
    case '\n':
      return Key{Code::kEnter};
    case '\t':
      return Key{Code::kTab};
    case '\b':
    case '\x7f':
      return Key{Code::kBackspace};
    case '\x0c':
      return Key{Code::kRedraw};
    case '\x15':
      return Key{Code::kClearLine};
    default:
      return std::nullopt;
  }
}

// The length of a character that begins with this byte.
std::size_t character_size(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
}

}  // namespace

std::vector<Key> KeyReader::read(std::string_view bytes) {
  pending_ += bytes;
  std::vector<Key> keys;
  std::size_t at = 0;
  while (at < pending_.size()) {
    const std::string_view rest = std::string_view(pending_).substr(at);
    if (rest[0] == kEscape) {
      if (rest.size() == 1) break;
      if (rest[1] == kEscape) {
        keys.push_back({Code::kEscape});
        at += 1;
        continue;
      }
      if (rest[1] != '[' && rest[1] != 'O') {  // Alt and a key: the key
        at += 1;
        continue;
      }
      const std::size_t size = rest[1] == '[' ? csi_size(rest) : (rest.size() > 2 ? 3 : 0);
      if (size == 0 && rest.size() < kLongest) break;
      if (size != 0)
        if (const std::optional<Key> key = csi_key(rest.substr(0, size)); key) keys.push_back(*key);
      at += size != 0 ? size : rest.size();
      continue;
    }
    if (static_cast<unsigned char>(rest[0]) < 0x20 || rest[0] == '\x7f') {
      if (const std::optional<Key> key = control_key(rest[0]); key) keys.push_back(*key);
      at += 1;
      continue;
    }
    const base::Character character = base::first_character(rest);
    if (character.size == 0 && rest.size() < character_size(rest[0])) break;
    if (character.size != 0)
      keys.push_back({Code::kText, std::string(rest.substr(0, character.size))});
    at += std::max<std::size_t>(1, character.size);
  }
  pending_.erase(0, at);
  return keys;
}

std::vector<Key> KeyReader::pause() {
  const bool escape = !pending_.empty() && pending_[0] == kEscape;
  const bool alone = pending_.size() == 1;
  pending_.clear();
  if (escape && alone) return {Key{Code::kEscape}};
  return {};
}

}  // namespace mete::top
