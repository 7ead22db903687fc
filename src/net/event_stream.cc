// SPDX-License-Identifier: Apache-2.0
// See event_stream.h.
#include "net/event_stream.h"

#include <algorithm>
#include <utility>

namespace mete::net {

Result<void> EventStream::feed(std::string_view piece) {
  if (pending_.size() + data_.size() + piece.size() > kMaxEventBytes)
    return Error::corrupt("an event of the stream is larger than " +
                          std::to_string(kMaxEventBytes) + " bytes");
  pending_ += piece;
  return {};
}

std::optional<std::string> EventStream::next() {
  constexpr std::string_view kData = "data:";
  std::size_t taken = 0;
  std::optional<std::string> event;
  while (!event) {
    const std::size_t end = pending_.find('\n', std::max(taken, searched_));
    if (end == std::string::npos) break;
    std::string_view line(pending_.data() + taken, end - taken);
    taken = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with(kData)) {
      line.remove_prefix(kData.size());
      if (line.starts_with(' ')) line.remove_prefix(1);
      if (std::exchange(any_data_, true)) data_ += '\n';
      data_ += line;
    } else if (line.empty() && std::exchange(any_data_, false)) {
      event = std::exchange(data_, {});
    }
  }
  pending_.erase(0, taken);
  searched_ = event ? 0 : pending_.size();
  return event;
}

}  // namespace mete::net
