// SPDX-License-Identifier: Apache-2.0
// What a workload asks of the cards, as written after --gpu or `gpu:`, and as a value:
//
//   gpu    := "0" | "all" | "grow" | share | count | ( count | "all" ) "x" share
//   share  := fraction | percent | size | size ".." ( size | "all" )
//   count  := 1 | 2 | ...
//
// Text in, GpuRequest or a precise error out. Integers only: a fraction is in thousandths. Parsing
// knows no cards; resolve.h applies a request to real ones.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/bytes.h"
#include "base/result.h"

namespace mete::core {

// A whole card, exclusively.
struct WholeCard {
  auto operator<=>(const WholeCard&) const = default;
};

// Thousandths of the card's capacity, 1..1000, shared with others. 1000 is all memory, but shared.
struct Fraction {
  std::uint32_t milli = 0;
  auto operator<=>(const Fraction&) const = default;
};

struct Size {
  Bytes bytes;
  auto operator<=>(const Size&) const = default;
};

// Reserve the first, may grow to the second (nullopt: the card's capacity) while the card has room.
struct Growing {
  Bytes from;
  std::optional<Bytes> to;
  auto operator<=>(const Growing&) const = default;
};

using Memory = std::variant<WholeCard, Fraction, Size, Growing>;

// On how many cards. kOne is a share without a count: only that one spreads over a --devices list.
struct CardCount {
  enum class Kind { kNone, kOne, kNumber, kAll };
  Kind kind = Kind::kNone;
  std::uint32_t number = 0;  // for kNumber, 1..kMaxCards; otherwise 0
  auto operator<=>(const CardCount&) const = default;
};

inline constexpr std::uint32_t kMaxCards = 1024;

// The minimum of a request: the driver's granule. Shares are cut to whole granules.
inline constexpr Bytes kGranule = Bytes::from_mib(2);

struct GpuRequest {
  CardCount cards;  // kNone: no GPU at all
  Memory memory;    // on each card; WholeCard when cards is kNone
  // The text that parse_gpu was given, for showing it again; "": made from values. Not compared:
  // requests in different words may be equal. Code that changes the values clears it.
  std::string written = {};

  friend bool operator==(const GpuRequest& a, const GpuRequest& b) {
    return a.cards == b.cards && a.memory == b.memory;
  }
  friend std::strong_ordering operator<=>(const GpuRequest& a, const GpuRequest& b) {
    if (const auto order = a.cards <=> b.cards; order != 0) return order;
    return a.memory <=> b.memory;
  }
};

GpuRequest no_gpu();
// "N" whole cards. 1 <= number <= kMaxCards.
GpuRequest whole_cards(std::uint32_t number);

Result<GpuRequest> parse_gpu(std::string_view text);

// The canonical text: parse_gpu(to_string(r)) == r for every r that parse_gpu returns. "0.4" prints
// as "40%", "8192M" as "8G", "grow" as "1G..all".
std::string to_string(const GpuRequest& request);

// The text as written: "0.4", "8GB", "grow"; otherwise the canonical text. parse_gpu reads it back.
std::string as_written(const GpuRequest& request);
// For users: the text as written and, where sizes are written in another unit than they are shown
// in, their value: "8GB = 7.45 GiB", "2x8GB = 2x 7.45 GiB", "8G", "40%".
std::string with_size(const GpuRequest& request);

}  // namespace mete::core
