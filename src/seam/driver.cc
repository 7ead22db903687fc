// SPDX-License-Identifier: Apache-2.0
#include "seam/driver.h"

#include "base/text.h"

namespace mete::seam {
namespace {

std::optional<std::uint8_t> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint8_t>(c - 'A' + 10);
  return std::nullopt;
}

bool is_dash_place(std::size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; }

}  // namespace

std::optional<Bytes> CardReading::capacity() const {
  if (!total || !reserved) return total;
  return total->checked_sub(*reserved);
}

std::optional<UuidBytes> parse_uuid(std::string_view text) {
  if (!text.starts_with("GPU-") || text.size() != 40) return std::nullopt;
  text.remove_prefix(4);
  UuidBytes bytes{};
  std::size_t digits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_dash_place(i)) {
      if (text[i] != '-') return std::nullopt;
      continue;
    }
    const std::optional<std::uint8_t> digit = hex_digit(text[i]);
    if (!digit) return std::nullopt;
    std::uint8_t& byte = bytes[digits / 2];
    byte = static_cast<std::uint8_t>(byte << 4 | *digit);
    ++digits;
  }
  return bytes;
}

std::string to_string(const UuidBytes& uuid) {
  std::string text = "GPU-" + base::hex_of(uuid);
  for (const std::size_t place : {12, 17, 22, 27}) text.insert(place, "-");
  return text;
}

}  // namespace mete::seam
