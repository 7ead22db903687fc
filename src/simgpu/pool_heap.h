// SPDX-License-Identifier: Apache-2.0
// Sub-allocation inside the slabs of a pool: pure arithmetic on addresses, no server, no clock. A
// block is 512-byte cells of one slab; finding, splitting and giving back cost the same with ten
// blocks and with a hundred thousand. The caller holds the async lock.
#pragma once

#include <cstddef>
#include <cstdint>

namespace simgpu {

struct Pool;
struct Slab;

// Where in which stream's work a block was freed. stream 0: that work was seen complete.
struct Stamp {
  uint64_t stream = 0;
  uint64_t sequence = 0;
};

struct Block {
  uint64_t address = 0;
  uint64_t bytes = 0;
  Slab* slab = nullptr;
  Block* before = nullptr;  // neighbours in the slab, by address
  Block* after = nullptr;
  Block* bin_before = nullptr;  // free blocks: neighbours in the bin
  Block* bin_after = nullptr;
  Block* pending_before = nullptr;  // free blocks with a stamp: neighbours in the pending list
  Block* pending_after = nullptr;
  Block* hash_next = nullptr;  // live blocks: the next one in the same bucket
  uint64_t requested = 0;
  bool is_free = false;
  Stamp stamp;
};

// One piece of physical memory of a pool, a multiple of the growth step.
struct Slab {
  Pool* pool = nullptr;
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint64_t physical = 0;
  Block* first = nullptr;
  uint64_t live_blocks = 0;
  uint64_t pending_blocks = 0;
  Slab* next = nullptr;
};

class PoolHeap {
 public:
  static constexpr uint64_t kCell = 512;
  static constexpr int kBins = 160;

  // Whether a block freed at `stamp` may be used now by whoever asks.
  using Usable = bool (*)(const Stamp& stamp, void* asker);

  // A live block of at least `bytes`, or nullptr when no free block that `usable` allows fits.
  Block* take(uint64_t bytes, Usable usable, void* asker);
  // The block is free from `stamp` on (stream 0: from now on).
  void give(Block* block, Stamp stamp);
  // Takes over `slab`, all of it free. False without host memory.
  bool add(Slab* slab);
  // Forgets a slab without live blocks; the caller owns it again.
  void remove(Slab* slab);
  // Drops the stamp of every free block for which `seen` says so, and joins neighbours.
  void settle(Usable seen, void* asker);

  Slab* slabs() const { return slabs_; }
  uint64_t used() const { return used_; }
  uint64_t reserved() const { return reserved_; }

 private:
  static int bin_of(uint64_t bytes);
  void bin_insert(Block* block);
  void bin_remove(Block* block);
  void pending_insert(Block* block);
  void pending_remove(Block* block);
  Block* join_neighbours(Block* block);
  Block* scan(int bin, uint64_t bytes, Usable usable, void* asker) const;

  Block* bins_[kBins] = {};
  uint64_t filled_[(kBins + 63) / 64] = {};
  Block* pending_ = nullptr;
  Slab* slabs_ = nullptr;
  uint64_t used_ = 0;
  uint64_t reserved_ = 0;
};

// The live block that starts at this address, in whichever pool; nullptr when there is none.
Block* block_at(uint64_t address);

}  // namespace simgpu
