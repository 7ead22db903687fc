// SPDX-License-Identifier: Apache-2.0
// Server-sent events out of the pieces in which they come. What the format has and our daemon does
// not send (ids, names, comments, ends of lines of other systems) is read past. Pure.
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
  // The data of the next event that is there as a whole; nullopt: its rest has not come yet.
  std::optional<std::string> next();

 private:
  std::string pending_;
  std::size_t searched_ = 0;  // of it: in which no line ends
  std::string data_;          // of the event that has begun
  bool any_data_ = false;
};

}  // namespace mete::net
