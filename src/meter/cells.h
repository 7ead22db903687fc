// SPDX-License-Identifier: Apache-2.0
// Which of the equal cells of a chunk are taken, and by which blocks. Two bits per cell: the cell
// is taken; a block begins there. Memory comes from mmap; all-zero is "none yet". Callers hold the
// process's lock.
#pragma once

#include <cstdint>

#include "meter/table.h"

namespace mete::meter {

class Cells {
 public:
  // False when the kernel has no memory left.
  bool make(uint32_t count) {
    words_ = (count + 63) / 64;
    taken_ = static_cast<uint64_t*>(map_pages(bytes()));
    if (taken_ == nullptr) return false;
    count_ = count;
    begins_ = taken_ + words_;
    // Bits beyond the last cell are marked as taken.
    if (count % 64 != 0) taken_[words_ - 1] = ~0ull << (count % 64);
    return true;
  }
  void drop() {
    if (taken_ != nullptr) unmap_pages(taken_, bytes());
    taken_ = begins_ = nullptr;
  }

  // Takes a block of `count` cells. Returns its first cell, or kNone.
  static constexpr uint32_t kNone = ~0u;
  uint32_t take(uint32_t count) {
    if (count == 0 || count > count_ - used_ || count >= no_run_of_) return kNone;
    uint32_t first = next_free(low_);
    low_ = first;
    while (first < count_) {
      const uint32_t end = next_taken(first, count);
      if (end - first >= count) {
        set(taken_, first, count);
        begins_[first / 64] |= 1ull << (first % 64);
        used_ += count;
        return first;
      }
      first = next_free(end);
    }
    no_run_of_ = count;
    return kNone;
  }

  // Frees the block that begins at `first`. Returns its number of cells.
  uint32_t give(uint32_t first) {
    const uint32_t count = length(first);
    clear(taken_, first, count);
    begins_[first / 64] &= ~(1ull << (first % 64));
    used_ -= count;
    if (first < low_) low_ = first;
    no_run_of_ = ~0u;
    return count;
  }

  // Finds the block that a cell belongs to. False: none.
  bool find(uint32_t cell, uint32_t* first, uint32_t* count) const {
    if (cell >= count_ || !is(taken_, cell)) return false;
    *first = cell;
    while (!is(begins_, *first)) --*first;
    *count = length(*first);
    return true;
  }

  bool empty() const { return used_ == 0; }
  uint32_t used() const { return used_; }

 private:
  static bool is(const uint64_t* bits, uint32_t at) {
    return (bits[at / 64] >> (at % 64) & 1) != 0;
  }
  static void set(uint64_t* bits, uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; ++i) bits[i / 64] |= 1ull << (i % 64);
  }
  static void clear(uint64_t* bits, uint32_t first, uint32_t count) {
    for (uint32_t i = first; i < first + count; ++i) bits[i / 64] &= ~(1ull << (i % 64));
  }
  uint32_t length(uint32_t first) const {
    uint32_t end = first + 1;
    while (end < count_ && is(taken_, end) && !is(begins_, end)) ++end;
    return end - first;
  }
  // The first free cell at or after `from`, or the end.
  uint32_t next_free(uint32_t from) const {
    for (uint32_t word = from / 64; word < words_; ++word) {
      uint64_t free = ~taken_[word];
      if (word == from / 64) free &= ~0ull << (from % 64);
      if (free != 0) return word * 64 + static_cast<uint32_t>(__builtin_ctzll(free));
    }
    return count_;
  }
  // The first taken cell at or after `from`, looking at no more than `most` cells.
  uint32_t next_taken(uint32_t from, uint32_t most) const {
    for (uint32_t word = from / 64; word < words_ && word * 64 < from + most; ++word) {
      uint64_t taken = taken_[word];
      if (word == from / 64) taken &= ~0ull << (from % 64);
      if (taken != 0) return word * 64 + static_cast<uint32_t>(__builtin_ctzll(taken));
    }
    return from + most < count_ ? from + most : count_;
  }
  uint64_t bytes() const { return (2ull * words_ * 8 + 4095) & ~4095ull; }

  uint64_t* taken_ = nullptr;
  uint64_t* begins_ = nullptr;
  uint32_t count_ = 0;
  uint32_t words_ = 0;
  uint32_t used_ = 0;
  uint32_t low_ = 0;          // every cell below is taken
  uint32_t no_run_of_ = ~0u;  // there is no free run of this length
};

}  // namespace mete::meter
