// SPDX-License-Identifier: Apache-2.0
// The elements of an array of jobs, as written after --array and as a value:
//
//   array := range { "," range } [ "%" at-once ]
//   range := first [ "-" last [ ":" step ] ]
//
// "0-99%4": a hundred jobs, at most four of them running. Text in, Array or a precise error out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mete::core {

inline constexpr std::size_t kMaxElements = 50'000;
inline constexpr std::uint32_t kMaxElement = 9'999'999;  // the highest element number

struct Array {
  struct Range {
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::uint32_t step = 1;
    bool operator==(const Range&) const = default;
  };
  std::vector<Range> ranges;
  std::optional<std::uint32_t> at_once;
  bool operator==(const Array&) const = default;
};

// invalid: does not follow the grammar, or has an element twice, no element or too many.
Result<Array> parse_array(std::string_view text);
std::string to_string(const Array& array);
// In the order in which the ranges are written.
std::vector<std::uint32_t> elements_of(const Array& array);
std::size_t count_of(const Array& array);

}  // namespace mete::core
