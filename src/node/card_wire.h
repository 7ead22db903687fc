// SPDX-License-Identifier: Apache-2.0
// The messages between the daemon and its NVML helper, as bytes: docs/adr/0009-nvml-helper.md.
// Frames of an eight-byte header (length, version, kind) and a body; little-endian; every length is
// checked before it is used, so that any bytes decode to values or to an Error. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "node/card_snapshot.h"

namespace mete::node {

inline constexpr std::size_t kFrameHeaderBytes = 8;
inline constexpr std::size_t kMaxFrameBytes = 4 << 20;  // of a body
inline constexpr std::uint16_t kCardWireVersion = 2;

// To the helper: the period of its readings.
struct Pace {
  std::uint32_t period_ms = 0;
  bool operator==(const Pace&) const = default;
};
// From the helper: it lives, and is about to call the driver.
struct Asking {
  bool operator==(const Asking&) const = default;
};
// From the helper: a snapshot, or why there is none.
using CardMessage = std::variant<Pace, Asking, CardSnapshot, Error>;

// One frame. exhausted: it would be too long.
Result<std::string> encode(const CardMessage& message);

// Takes bytes as they arrive and returns whole messages. After an Error it returns only that Error:
// the sender must be restarted.
class CardDecoder {
 public:
  void feed(std::string_view bytes) { pending_ += bytes; }
  // nullopt: the message is not complete yet.
  Result<std::optional<CardMessage>> next();

 private:
  std::string pending_;
  std::size_t at_ = 0;
  std::optional<Error> broken_;
};

}  // namespace mete::node
