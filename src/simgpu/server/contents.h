// SPDX-License-Identifier: Apache-2.0
// The content of one piece of simulated memory: runs of a repeated 4-byte pattern (a fill of 100
// GiB is one entry) and 4 KiB pages of real data. Fresh memory reads as zero. The data of all
// pieces together is bounded by a budget; a write past it fails and changes nothing beyond the
// point it has reached.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

namespace simgpu {

struct HostBudget {
  uint64_t used = 0;
  uint64_t most = 2ull << 30;
};

class Contents {
 public:
  explicit Contents(HostBudget* budget) : budget_(budget) {}
  ~Contents();
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;

  // The caller checks ranges. All return false only when the host budget is spent.
  bool write(uint64_t offset, const uint8_t* data, uint64_t bytes);
  void read(uint64_t offset, uint8_t* data, uint64_t bytes) const;
  // `pattern` repeats every 4 bytes, in phase with offset 0 of the piece.
  bool fill(uint64_t offset, uint64_t bytes, uint32_t pattern);
  // Copies inside or between pieces; overlapping ranges are copied in the safe direction.
  bool copy_from(const Contents& from, uint64_t from_offset, uint64_t to_offset, uint64_t bytes);

 private:
  static constexpr uint64_t kPage = 4096;
  struct Run {
    uint64_t end;  // in pages, exclusive
    uint32_t pattern;
  };
  using Page = std::unique_ptr<uint8_t[]>;

  // The pattern of a page that holds no data, and where that run of pages ends.
  uint32_t pattern_at(uint64_t page, uint64_t* run_end) const;
  uint8_t* data_page(uint64_t page);  // made from its pattern if necessary; null: budget spent
  void drop_pages(uint64_t first, uint64_t end);
  void set_runs(uint64_t first, uint64_t end, uint32_t pattern);
  void fold_page(uint64_t page);  // a page that became uniform becomes a pattern again
  bool fill_part(uint64_t offset, uint64_t bytes, uint32_t pattern);

  HostBudget* budget_;
  std::map<uint64_t, Page> pages_;
  std::map<uint64_t, Run> runs_;  // by first page; pages outside every run are zero
};

}  // namespace simgpu
