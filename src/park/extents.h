// SPDX-License-Identifier: Apache-2.0
// Which bytes of some segments are taken: the arithmetic of the arena and of the spill file,
// without the memory itself. A request may be split into several extents, as few as best fit and
// then largest first make it. Everything is in whole granules of 2 MiB. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

namespace mete::park {

struct Extent {
  uint32_t segment;
  uint64_t offset;
  uint64_t bytes;
  bool operator==(const Extent&) const = default;
};

class Extents {
 public:
  // Adds a new segment, all of it free.
  void add(uint32_t segment, uint64_t bytes);
  // Removes a segment that is completely free.
  void remove(uint32_t segment);
  // The free segment that was added last; the oldest stay, and with them few large ones.
  std::optional<uint32_t> free_segment() const;
  uint64_t bytes_of(uint32_t segment) const { return segments_.at(segment).bytes; }

  // Exactly `bytes`, or nothing if there is less.
  std::vector<Extent> take(uint64_t bytes);
  void give(const std::vector<Extent>& extents);

  uint64_t size() const { return size_; }
  uint64_t free_bytes() const { return free_; }

 private:
  struct Segment {
    uint64_t bytes = 0;
    std::map<uint64_t, uint64_t> runs;  // free: offset to bytes; never two adjacent ones
  };
  using BySize = std::tuple<uint64_t, uint32_t, uint64_t>;  // bytes, segment, offset

  void add_run(uint32_t segment, uint64_t offset, uint64_t bytes);
  void remove_run(uint32_t segment, uint64_t offset, uint64_t bytes);

  std::map<uint32_t, Segment> segments_;
  std::set<BySize> by_size_;
  uint64_t size_ = 0;
  uint64_t free_ = 0;
};

}  // namespace mete::park
