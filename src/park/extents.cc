// SPDX-License-Identifier: Apache-2.0
// See extents.h.
#include "park/extents.h"

#include <algorithm>
#include <iterator>

#include "base/assert.h"

namespace mete::park {

void Extents::add_run(uint32_t segment, uint64_t offset, uint64_t bytes) {
  segments_.at(segment).runs.emplace(offset, bytes);
  by_size_.emplace(bytes, segment, offset);
}

void Extents::remove_run(uint32_t segment, uint64_t offset, uint64_t bytes) {
  segments_.at(segment).runs.erase(offset);
  by_size_.erase({bytes, segment, offset});
}

void Extents::add(uint32_t segment, uint64_t bytes) {
  METE_ASSERT(bytes > 0 && !segments_.contains(segment));
  segments_[segment].bytes = bytes;
  add_run(segment, 0, bytes);
  size_ += bytes;
  free_ += bytes;
}

void Extents::remove(uint32_t segment) {
  const uint64_t bytes = bytes_of(segment);
  METE_ASSERT(by_size_.contains({bytes, segment, 0}));
  remove_run(segment, 0, bytes);
  segments_.erase(segment);
  size_ -= bytes;
  free_ -= bytes;
}

std::optional<uint32_t> Extents::free_segment() const {
  const auto found = std::find_if(segments_.rbegin(), segments_.rend(), [](const auto& entry) {
    const Segment& segment = entry.second;
    return segment.runs.size() == 1 && segment.runs.begin()->second == segment.bytes;
  });
  if (found == segments_.rend()) return std::nullopt;
  return found->first;
}

std::vector<Extent> Extents::take(uint64_t bytes) {
  std::vector<Extent> taken;
  if (bytes == 0 || bytes > free_) return taken;
  free_ -= bytes;
  while (bytes > 0) {
    // The smallest run that holds all of it; if there is none, the largest, whole.
    auto found = by_size_.lower_bound({bytes, 0, 0});
    if (found == by_size_.end()) found = std::prev(found);
    const auto [run, segment, offset] = *found;
    const uint64_t part = std::min(run, bytes);
    remove_run(segment, offset, run);
    if (part < run) add_run(segment, offset + part, run - part);
    taken.push_back({segment, offset, part});
    bytes -= part;
  }
  return taken;
}

void Extents::give(const std::vector<Extent>& extents) {
  for (const Extent& extent : extents) {
    std::map<uint64_t, uint64_t>& runs = segments_.at(extent.segment).runs;
    uint64_t offset = extent.offset;
    uint64_t bytes = extent.bytes;
    METE_ASSERT(bytes > 0 && offset + bytes <= bytes_of(extent.segment));
    const auto after = runs.lower_bound(offset);
    METE_ASSERT(after == runs.end() || after->first >= offset + bytes);
    if (after != runs.begin()) {
      const auto [before_at, before_bytes] = *std::prev(after);
      METE_ASSERT(before_at + before_bytes <= offset);
      if (before_at + before_bytes == offset) {
        remove_run(extent.segment, before_at, before_bytes);
        offset = before_at;
        bytes += before_bytes;
      }
    }
    if (const auto next = runs.find(extent.offset + extent.bytes); next != runs.end()) {
      const auto [next_at, next_bytes] = *next;
      remove_run(extent.segment, next_at, next_bytes);
      bytes += next_bytes;
    }
    add_run(extent.segment, offset, bytes);
    free_ += extent.bytes;
  }
}

}  // namespace mete::park
