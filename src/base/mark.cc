// SPDX-License-Identifier: Apache-2.0
#include "base/mark.h"

#include <algorithm>
#include <vector>

#include "base/columns.h"
#include "base/text.h"

namespace mete::base {

std::string marked(std::string_view text, std::size_t at) {
  constexpr std::size_t kBefore = 50, kAfter = 28;  // columns, so that it fits on 80
  std::vector<std::string> shown;
  std::size_t mark = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::string_view bytes =
        text.substr(begin, std::max<std::size_t>(1, first_character(text.substr(begin)).size));
    const bool blank = trim(bytes).empty();
    shown.push_back(blank ? " " : printable(bytes));
    begin += bytes.size();
    if (begin <= at) mark = shown.size();
  }
  std::size_t first = mark, before = 0;
  while (first > 0 && before + columns_of(shown[first - 1]) <= kBefore)
    before += columns_of(shown[--first]);
  std::string line;
  for (std::size_t i = first; i < shown.size() && columns_of(line) < before + kAfter; ++i)
    line += shown[i];
  return line + "\n" + std::string(before, ' ') + "^";
}

}  // namespace mete::base
