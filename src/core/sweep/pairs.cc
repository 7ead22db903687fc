// SPDX-License-Identifier: Apache-2.0
#include "core/sweep/pairs.h"

#include <algorithm>
#include <string>

#include "base/mark.h"
#include "base/text.h"

namespace mete::core::sweep {

Result<Pairs> Pairs::parse(std::string_view what, std::string_view text,
                           std::span<const std::string_view> keys) {
  if (text.size() > kMaxPairs)
    return Error::invalid(std::string(what) + " is too long")
        .with_evidence(std::to_string(text.size()) + " characters; at most " +
                       std::to_string(kMaxPairs));
  Pairs pairs(what, text);
  if (base::trim(text).empty()) return pairs;
  std::size_t at = 0;
  for (const std::string_view part : base::split(text, ',')) {
    if (Result<void> added = pairs.add(part, at, keys); !added) return std::move(added).error();
    at += part.size() + 1;
  }
  return pairs;
}

Result<void> Pairs::add(std::string_view part, std::size_t at,
                        std::span<const std::string_view> keys) {
  const std::string_view trimmed = base::trim(part);
  if (!trimmed.empty()) at += static_cast<std::size_t>(trimmed.data() - part.data());
  const std::size_t equals = trimmed.find('=');
  const std::string_view key = base::trim(trimmed.substr(0, equals));
  if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
    std::vector<std::string> all(keys.begin(), keys.end());
    Error error =
        wrong_at(at, (key.empty() ? "a key belongs here" : "there is no key " + base::quote(key)) +
                         " (" + base::join(all, ", ") + ")");
    const std::string_view near = base::nearest(key, {keys.begin(), keys.end()});
    if (!near.empty()) error.hint = "did you mean '" + std::string(near) + "'?";
    return error;
  }
  if (find(key) != nullptr) return wrong_at(at, std::string(key) + " is given twice");
  if (equals == std::string_view::npos)
    return wrong_at(at + trimmed.size(), "'=' and a value belong here");
  const std::string_view value = base::trim(trimmed.substr(equals + 1));
  const std::size_t value_at =
      value.empty() ? at + trimmed.size() : static_cast<std::size_t>(value.data() - text_.data());
  if (value.empty()) return wrong_at(value_at, "a value belongs here");
  pairs_.push_back({key, value, value_at});
  return {};
}

const Pair* Pairs::find(std::string_view key) const {
  const auto found =
      std::find_if(pairs_.begin(), pairs_.end(), [&](const Pair& pair) { return pair.key == key; });
  return found == pairs_.end() ? nullptr : &*found;
}

Result<std::uint64_t> Pairs::whole(std::string_view key, std::uint64_t absent, std::uint64_t least,
                                   std::uint64_t most) const {
  const Pair* pair = find(key);
  if (pair == nullptr) return absent;
  const Result<std::uint64_t> number = base::parse_uint(pair->value);
  if (!number) return wrong(key, std::string(key) + " is a whole number");
  if (*number < least)
    return wrong(key, std::string(key) + " is at least " + std::to_string(least));
  if (*number > most) return wrong(key, std::string(key) + " is at most " + std::to_string(most));
  return *number;
}

Error Pairs::wrong(std::string_view key, std::string_view why) const {
  const Pair* pair = find(key);
  return wrong_at(pair == nullptr ? 0 : pair->value_at, why);
}

Error Pairs::wrong_at(std::size_t at, std::string_view why) const {
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  const std::string_view before = text_.substr(0, at);
  const std::size_t character =
      1 + before.size() -
      static_cast<std::size_t>(std::count_if(before.begin(), before.end(), continues));  // of UTF-8
  return Error::invalid(std::string(what_) + " is not understood: " + std::string(why) +
                        " (character " + std::to_string(character) + ")")
      .with_evidence(base::marked(text_, at));
}

}  // namespace mete::core::sweep
