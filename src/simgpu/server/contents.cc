// SPDX-License-Identifier: Apache-2.0
// Pages and runs. Invariant: a page of data hides the run under it. A write turns the touched pages
// into data, a fill replaces pages by a run; a page that becomes uniform turns into a run again, so
// memory stays proportional to the real data.
#include "simgpu/server/contents.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace simgpu {
namespace {

// The pattern as it appears when reading starts `phase` bytes into it.
uint32_t rotate(uint32_t pattern, uint64_t phase) {
  const unsigned bits = static_cast<unsigned>(phase & 3) * 8;
  return bits == 0 ? pattern : (pattern >> bits) | (pattern << (32 - bits));
}

void put_pattern(uint8_t* to, uint64_t bytes, uint32_t pattern) {
  uint64_t done = 0;
  for (; done + 4 <= bytes; done += 4) memcpy(to + done, &pattern, 4);
  if (done < bytes) memcpy(to + done, &pattern, bytes - done);
}

}  // namespace

Contents::~Contents() { budget_->used -= pages_.size() * kPage; }

uint32_t Contents::pattern_at(uint64_t page, uint64_t* run_end) const {
  auto next = runs_.upper_bound(page);
  if (next != runs_.begin()) {
    const auto& run = *std::prev(next);
    if (page < run.second.end) {
      *run_end = run.second.end;
      return run.second.pattern;
    }
  }
  *run_end = next == runs_.end() ? UINT64_MAX : next->first;
  return 0;
}

uint8_t* Contents::data_page(uint64_t page) {
  auto found = pages_.find(page);
  if (found != pages_.end()) return found->second.get();
  if (budget_->used + kPage > budget_->most) return nullptr;
  Page made(new (std::nothrow) uint8_t[kPage]);
  if (made == nullptr) return nullptr;
  uint64_t end = 0;
  put_pattern(made.get(), kPage, pattern_at(page, &end));
  budget_->used += kPage;
  return (pages_[page] = std::move(made)).get();
}

void Contents::drop_pages(uint64_t first, uint64_t end) {
  auto from = pages_.lower_bound(first);
  auto to = pages_.lower_bound(end);
  budget_->used -= static_cast<uint64_t>(std::distance(from, to)) * kPage;
  pages_.erase(from, to);
}

void Contents::set_runs(uint64_t first, uint64_t end, uint32_t pattern) {
  // Cut the run that covers `first`, and the one that covers `end`.
  for (const uint64_t cut : {first, end}) {
    auto next = runs_.upper_bound(cut);
    if (next == runs_.begin()) continue;
    auto run = std::prev(next);
    if (run->first < cut && cut < run->second.end) {
      const Run tail{run->second.end, run->second.pattern};
      run->second.end = cut;
      runs_[cut] = tail;
    }
  }
  runs_.erase(runs_.lower_bound(first), runs_.lower_bound(end));
  if (pattern == 0) return;
  auto made = runs_.emplace(first, Run{end, pattern}).first;
  // Joins equal neighbours, so that filling piece by piece stays one entry.
  if (made != runs_.begin()) {
    auto before = std::prev(made);
    if (before->second.end == first && before->second.pattern == pattern) {
      before->second.end = end;
      runs_.erase(made);
      made = before;
    }
  }
  auto after = std::next(made);
  if (after != runs_.end() && after->first == made->second.end &&
      after->second.pattern == pattern) {
    made->second.end = after->second.end;
    runs_.erase(after);
  }
}

void Contents::fold_page(uint64_t page) {
  const auto found = pages_.find(page);
  if (found == pages_.end()) return;
  const uint8_t* data = found->second.get();
  if (memcmp(data, data + 4, kPage - 4) != 0) return;
  uint32_t pattern;
  memcpy(&pattern, data, 4);
  drop_pages(page, page + 1);
  set_runs(page, page + 1, pattern);
}

bool Contents::write(uint64_t offset, const uint8_t* data, uint64_t bytes) {
  while (bytes > 0) {
    const uint64_t page = offset / kPage;
    const uint64_t inside = offset % kPage;
    const uint64_t piece = std::min(bytes, kPage - inside);
    if (piece == kPage && memcmp(data, data + 4, kPage - 4) == 0) {
      uint32_t pattern;
      memcpy(&pattern, data, 4);
      drop_pages(page, page + 1);
      set_runs(page, page + 1, pattern);
    } else {
      uint8_t* to = data_page(page);
      if (to == nullptr) return false;
      memcpy(to + inside, data, piece);
    }
    offset += piece;
    data += piece;
    bytes -= piece;
  }
  return true;
}

void Contents::read(uint64_t offset, uint8_t* data, uint64_t bytes) const {
  while (bytes > 0) {
    const uint64_t page = offset / kPage;
    const uint64_t inside = offset % kPage;
    const uint64_t piece = std::min(bytes, kPage - inside);
    const auto found = pages_.find(page);
    if (found != pages_.end()) {
      memcpy(data, found->second.get() + inside, piece);
    } else {
      uint64_t end = 0;
      put_pattern(data, piece, rotate(pattern_at(page, &end), inside));
    }
    offset += piece;
    data += piece;
    bytes -= piece;
  }
}

bool Contents::fill_part(uint64_t offset, uint64_t bytes, uint32_t pattern) {
  const uint64_t page = offset / kPage;
  uint64_t end = 0;
  if (pages_.find(page) == pages_.end() && pattern_at(page, &end) == pattern) return true;
  uint8_t* to = data_page(page);
  if (to == nullptr) return false;
  put_pattern(to + offset % kPage, bytes, rotate(pattern, offset));
  fold_page(page);
  return true;
}

bool Contents::fill(uint64_t offset, uint64_t bytes, uint32_t pattern) {
  const uint64_t end = offset + bytes;
  const uint64_t first_whole = (offset + kPage - 1) / kPage;
  const uint64_t end_whole = end / kPage;
  if (first_whole > end_whole) return fill_part(offset, bytes, pattern);
  if (offset < first_whole * kPage && !fill_part(offset, first_whole * kPage - offset, pattern)) {
    return false;
  }
  if (first_whole < end_whole) {
    drop_pages(first_whole, end_whole);
    set_runs(first_whole, end_whole, pattern);
  }
  return end_whole * kPage == end || fill_part(end_whole * kPage, end - end_whole * kPage, pattern);
}

bool Contents::copy_from(const Contents& from, uint64_t from_offset, uint64_t to_offset,
                         uint64_t bytes) {
  uint8_t buffer[kPage];
  if (&from == this && from_offset < to_offset && to_offset < from_offset + bytes) {
    // Overlap with the target behind: page by page from the end.
    while (bytes > 0) {
      const uint64_t piece = std::min(bytes, kPage);
      bytes -= piece;
      from.read(from_offset + bytes, buffer, piece);
      if (!write(to_offset + bytes, buffer, piece)) return false;
    }
    return true;
  }
  while (bytes > 0) {
    const uint64_t page = from_offset / kPage;
    uint64_t piece = std::min(bytes, kPage - from_offset % kPage);
    const auto data = from.pages_.lower_bound(page);
    if (data != from.pages_.end() && data->first == page) {
      memcpy(buffer, data->second.get() + from_offset % kPage, piece);
      if (!write(to_offset, buffer, piece)) return false;
    } else {
      // A run of one pattern, up to its end or to the next page of data.
      uint64_t end = 0;
      const uint32_t pattern = from.pattern_at(page, &end);
      if (data != from.pages_.end()) end = std::min(end, data->first);
      if (end <= (from_offset + bytes) / kPage) {
        piece = end * kPage - from_offset;
      } else {
        piece = bytes;
      }
      // In phase with the source's offset 0; the target's phase is that of its own offset 0.
      if (!fill(to_offset, piece, rotate(pattern, from_offset - to_offset))) return false;
    }
    from_offset += piece;
    to_offset += piece;
    bytes -= piece;
  }
  return true;
}

}  // namespace simgpu
