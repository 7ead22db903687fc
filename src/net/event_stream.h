// SPDX-License-Identifier: Apache-2.0
// Server-sent events, parsed from the pieces in which they arrive. Parts of the format that our
// daemon does not send (ids, names, comments, other line ends) are skipped. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace mete::net {

class EventStream {
 public:
  static constexpr std::size_t kMaxEventBytes = 64 << 20;

  // corrupt: an event is larger than kMaxEventBytes; nothing more can be read then.
  Result<void> feed(std::string_view piece);
  // The data of the next complete event; nullopt: its rest has not arrived yet.
  std::optional<std::string> next();

 private:
  std::string pending_;
  std::size_t searched_ = 0;  // no line ends before this offset
  std::string data_;          // of the event that has begun
  bool any_data_ = false;
};

}  // namespace mete::net
