// SPDX-License-Identifier: Apache-2.0
// Options of the form "key=value,key=value", as --asha and reducers take them: text in, pairs out,
// errors that point at the character. At most kMaxPairs characters. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mete::core::sweep {

inline constexpr std::size_t kMaxPairs = 1'000;  // characters

struct Pair {
  std::string_view key;  // of the text
  std::string_view value;
  std::size_t value_at = 0;  // bytes from the beginning of the text
};

class Pairs {
 public:
  // `what` names the text in messages ("the ASHA rule"). invalid: no "=", a key that is not in
  // `keys`, a key twice, no value. The text must outlive the result. An empty text has no pairs.
  static Result<Pairs> parse(std::string_view what, std::string_view text,
                             std::span<const std::string_view> keys);
  const Pair* find(std::string_view key) const;
  // The number of a key, or `absent`. invalid: not a whole number, or below `least`, or above
  // `most`.
  Result<std::uint64_t> whole(std::string_view key, std::uint64_t absent, std::uint64_t least,
                              std::uint64_t most) const;
  // An error that points at the value of a key; at the beginning if there is no such key.
  Error wrong(std::string_view key, std::string_view why) const;

 private:
  Pairs(std::string_view what, std::string_view text) : what_(what), text_(text) {}
  Error wrong_at(std::size_t at, std::string_view why) const;
  Result<void> add(std::string_view part, std::size_t at, std::span<const std::string_view> keys);

  std::string_view what_;
  std::string_view text_;
  std::vector<Pair> pairs_;
};

}  // namespace mete::core::sweep
